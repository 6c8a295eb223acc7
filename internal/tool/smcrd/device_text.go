// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"bufio"
	"fmt"
	"io"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

func writeDevicesR(
	w io.Writer, devices []netlinksmc.Device, header, details bool, netdev func(uint32) string,
) error {
	b := bufio.NewWriter(w)
	if header {
		pci := ""
		if details {
			pci = " FID   PCI-ID        PCHID  "
		}
		fmt.Fprintln(b, "Net-Dev         IB-Dev   IB-P  IB-State  Type          Crit  "+pci+"#Links  PNET-ID  ")
	}
	for _, d := range devices {
		for _, p := range d.Ports {
			fmt.Fprintf(b, "%s %s %4d  %8s  %-13s  %3s   ",
				left(netdev(p.NetIfindex), 15), fixed(d.IBName, 8), p.Number, p.State, typeR(d), yesNo(d.Critical))
			if details {
				fmt.Fprintf(b, "%04x  %s  %04x    ", d.FID, left(d.PCIID, 12), d.CHID)
			}
			fmt.Fprintf(b, "%5d  %s \n", p.Links, left(pnetID(p), 16))
		}
	}
	return b.Flush()
}

func writeDevicesD(w io.Writer, devices []netlinksmc.Device) error {
	b := bufio.NewWriter(w)
	if len(devices) > 0 {
		fmt.Fprintln(b, "FID  Type  PCI-ID        PCHID  InUse  #LGs  PNET-ID  ")
	}
	for _, d := range devices {
		var port netlinksmc.Port
		if len(d.Ports) > 0 {
			port = d.Ports[0]
		}
		fmt.Fprintf(b, "%04x %-4s  %s  %04x   %-4s  %5d  %s \n",
			d.FID, typeD(d), left(d.PCIID, 12), d.CHID, yesNo(d.Critical), d.UseCount, left(pnetID(port), 16))
	}
	return b.Flush()
}

// pnetID returns the port's PNET ID with an asterisk if it was set by smc_pnet.
func pnetID(p netlinksmc.Port) string {
	if p.PNETIDByUser {
		return "*" + trim(p.PNETID)
	}
	return trim(p.PNETID)
}
