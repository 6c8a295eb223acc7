// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// The tables below are those of smc-tools byte for byte, trailing blanks included. A header is printed when the kernel
// has listed anything, even if a filter then leaves no row.

func writeLinkGroupsR(w io.Writer, groups []netlinksmc.LinkGroupR, header bool) error {
	b := bufio.NewWriter(w)
	if header {
		fmt.Fprintln(b, "LG-ID    LG-Role  LG-Type  VLAN  #Conns  PNET-ID ")
	}
	for _, g := range groups {
		fmt.Fprintf(b, "%08x %-8s %-8s %4s  %6d  %s \n",
			g.ID, g.Role, g.Type, vlan(g.VLAN), g.Conns, left(trim(g.PNETID), 16))
	}
	return b.Flush()
}

func writeLinkGroupsD(w io.Writer, groups []netlinksmc.LinkGroupD, header bool) error {
	b := bufio.NewWriter(w)
	if header {
		fmt.Fprintln(b, "LG-ID    VLAN  #Conns  PNET-ID ")
	}
	for _, g := range groups {
		fmt.Fprintf(b, "%08x %4s  %6d  %s \n", g.ID, vlan(g.VLAN), g.Conns, left(trim(g.PNETID), 16))
	}
	return b.Flush()
}

// vlan formats a VLAN ID for the tables; 0 means no VLAN.
func vlan(id uint8) string {
	if id == 0 {
		return "0"
	}
	return "0x" + strconv.FormatUint(uint64(id), 16)
}

func writeLinks(
	w io.Writer, groups []netlinksmc.LinkGroupR, header bool, details int, ifname func(uint32) string,
) error {
	b := bufio.NewWriter(w)
	if header {
		fmt.Fprint(b, "LG-ID    LG-Role  LG-Type  Net-Dev         Link-State      #Conns  ")
		if details > 0 {
			fmt.Fprint(b, "Link-UID  Peer-UID  IB-Dev    IB-P  ")
		}
		if details > 1 {
			fmt.Fprint(b, "Local-GID                                 Peer-GID  ")
		}
		fmt.Fprintln(b)
	}
	for _, g := range groups {
		for _, l := range g.Links {
			fmt.Fprintf(b, "%08x %-8s %-8s %s %-15s %6d  ",
				g.ID, g.Role, g.Type, left(ifname(l.NetIfindex), 15), l.State, l.Conns)
			if details > 0 {
				fmt.Fprintf(b, "%08x  %08x  %s  %4d  ", l.UID, l.PeerUID, fixed(l.IBDev, 8), l.IBPort)
			}
			if details > 1 {
				fmt.Fprintf(b, "%s  %s  ", left(l.GID, 40), left(l.PeerGID, 0))
			}
			fmt.Fprintln(b)
		}
	}
	return b.Flush()
}

// block writes link groups as blocks of lines.
type block struct{ w *bufio.Writer }

func (b block) line(key, format string, args ...any) {
	fmt.Fprintf(b.w, "%-9s: ", key)
	fmt.Fprintf(b.w, format+"\n", args...)
}

// version writes the lines about the version of SMC and, from 2, about the peer.
func (b block) version(v2 *netlinksmc.LinkGroupV2, direct netlinksmc.Optional[bool]) {
	if v2 == nil {
		b.line("Version", "1")
		return
	}
	b.line("Version", "%d", v2.Version)
	b.line("Peer-Rel", "%d", v2.Release)
	b.line("Peer-Host", "%s", left(v2.PeerHost, 0))
	b.line("Peer-OS", "%s", v2.PeerOS)
	if d, ok := direct.Get(); ok {
		b.line("Direct", "%s", yesNo(d))
	}
	b.line("EID", "%s", left(v2.EID, 32))
}

func writeBlocksR(w io.Writer, groups []netlinksmc.LinkGroupR) error {
	b := block{bufio.NewWriter(w)}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(b.w)
		}
		b.line("LG-ID", "%08x", g.ID)
		b.line("LG-Role", "%s", g.Role)
		b.line("LG-Type", "%s", g.Type)
		b.line("VLAN", "%x", g.VLAN)
		b.line("PNET-ID", "%s", trim(g.PNETID))
		b.version(g.V2, g.Direct)
		b.line("#Conns", "%d", g.Conns)
		b.line("Sndbuf", "%d B", g.SndbufAlloc.Or(0))
		b.line("RMB", "%d B", g.RMBAlloc.Or(0))
	}
	return b.w.Flush()
}

func writeBlocksD(w io.Writer, groups []netlinksmc.LinkGroupD) error {
	b := block{bufio.NewWriter(w)}
	for i, g := range groups {
		if i > 0 {
			fmt.Fprintln(b.w)
		}
		b.line("LG-ID", "%08x", g.ID)
		b.line("VLAN", "%x", g.VLAN)
		b.line("PNET-ID", "%s", trim(g.PNETID))
		b.version(g.V2, netlinksmc.Optional[bool]{})
		b.line("#Conns", "%d", g.Conns)
		b.line("Sndbuf", "%d B", g.SndbufAlloc.Or(0))
		b.line("DMB", "%d B", g.DMBAlloc.Or(0))
	}
	return b.w.Flush()
}
