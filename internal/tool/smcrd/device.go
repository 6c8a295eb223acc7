// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

const deviceLongD = `List the ISM devices of the host. A '*' before a PNET ID means that it comes
from smc_pnet and not from firmware. A device of type 1110 is a fabric, memory
that guests of a KVM host share; its PCHID is between ff00 and fffe.

JSON fields:
  schema; transport; devices [{pci_address, device_type, vendor_id, device_id,
  fid, pchid, critical, linkgroup_count, ports [{port, state, pnet_id,
  pnet_id_origin}]}].
  Numbers in strings are hexadecimal.`

const deviceLongR = `List the RoCE devices of the host, a row per port. 'ibdev DEV' and 'netdev DEV'
select those of an RDMA device or a network interface. -d adds FID, PCI ID and
PCHID. A '*' before a PNET ID means that it comes from smc_pnet and not from
firmware.

Interfaces belong to the initial network namespace: in others their names are
blank.

JSON fields:
  schema; transport; devices [{device, pci_address, device_type, vendor_id,
  device_id, fid, pchid, critical, ports [{port, state, netdev, ifindex,
  link_count, pnet_id, pnet_id_origin}]}]. Numbers in strings are hexadecimal.`

// devQuery is the filter in the words after "device"; "" matches any.
type devQuery struct{ ibdev, netdev string }

func newDevice(o *options) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "device [show] [all]",
		Short:   "List ISM devices",
		Long:    deviceLongD,
		Example: "  # ISM devices and how many link groups use them\n  smcd device",
		Args:    cobra.ArbitraryArgs,
	}
	if o.tech == techR {
		cmd.Use = "device [show] [all] [ibdev DEV] [netdev DEV]"
		cmd.Short = "List RoCE devices"
		cmd.Long = deviceLongR
		cmd.Example = "  # RoCE devices with their PCI IDs\n  smcr -d device\n\n  # the one behind an interface\n  smcr device netdev eth0"
	}
	cmd.ValidArgsFunction = o.completeDevice
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if wantsHelp(args) {
			return cmd.Help()
		}
		q, err := parseDevice(o.tech, args)
		if err != nil {
			return err
		}
		return o.withClient(cmd.Context(), func(c client) error { return o.runDevices(cmd.Context(), c, q) })
	}
	return cmd
}

func parseDevice(t tech, args []string) (q devQuery, err error) {
	args = listIsShow(args)
	for _, word := range []string{"show", "all"} {
		if len(args) > 0 {
			if _, ok := abbreviated(args[0], word); ok {
				args = args[1:]
			}
		}
	}
	q.ibdev, q.netdev, err = parseFilters(t, args)
	return q, err
}

func (o *options) runDevices(ctx context.Context, c client, q devQuery) error {
	list := c.DevicesR
	if o.tech == techD {
		list = c.DevicesD
	}
	devices, err := list(ctx)
	warn, err := complete(err)
	if err != nil {
		return err
	}
	netdev := o.deviceNetdevs()
	found := q.selectDevices(devices, netdev)
	switch {
	case o.json:
		err = o.writeJSON(newDevicesJSON(o.tech, found, netdev))
	case o.tech == techD:
		err = writeDevicesD(o.env.Out, found)
	default:
		err = writeDevicesR(o.env.Out, found, len(devices) > 0, o.details > 0, netdev)
	}
	return cmp.Or(err, warn)
}

// deviceNetdevs returns a function that returns the interface name of a device's port. The kernel reports the interface's
// number in the initial network namespace. In another namespace, the same number may be another interface, so the function
// returns no name there.
func (o *options) deviceNetdevs() func(uint32) string {
	if o.initialNetNS() {
		return o.ifname
	}
	return func(uint32) string { return "" }
}

// selectDevices returns the devices that q matches, with only the ports that it matches.
func (q devQuery) selectDevices(devices []netlinksmc.Device, netdev func(uint32) string) []netlinksmc.Device {
	if q == (devQuery{}) {
		return devices
	}
	var found []netlinksmc.Device
	for _, d := range devices {
		if q.ibdev != "" && d.IBName != q.ibdev {
			continue
		}
		var ports []netlinksmc.Port
		for _, p := range d.Ports {
			if q.netdev == "" || netdev(p.NetIfindex) == q.netdev {
				ports = append(ports, p)
			}
		}
		if d.Ports = ports; len(ports) > 0 {
			found = append(found, d)
		}
	}
	return found
}

// typeR returns the type of a RoCE device by its PCI ID, like smc-tools, which knows the virtual functions of IBM Z.
func typeR(d netlinksmc.Device) string {
	switch d.Device {
	case deviceRoCEExpress:
		return "RoCE_Express"
	case 0x1016:
		return "RoCE_Express2"
	case 0x101e:
		return "RoCE_Express3"
	default:
		return fmt.Sprintf("%x", d.Device)
	}
}

// typeD returns the type of an SMC-D device.
func typeD(d netlinksmc.Device) string {
	if d.Device == 0x04ed {
		return "ISM"
	}
	return fmt.Sprintf("%x", d.Device)
}
