// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"syscall"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Interface is a network interface.
type Interface struct {
	Name  string
	Index int
	// Kind is "vlan", "bond", "bridge", "veth" and the like, "device" for hardware.
	Kind                  string
	Up, Carrier, Loopback bool
	MTU                   int
	Addresses             []netip.Prefix
	PNETID                ism.PNETID
	// Below is the interface on which this one is stacked, empty if there is none. VLAN is its VLAN ID, 0 for none.
	Below string
	VLAN  int
}

// Port is a port of an RDMA device.
type Port struct {
	Device   string
	Number   uint8
	RoCE     bool
	Software bool
	// State is "ACTIVE" and the like. NetDev is the interface of the port, empty if it is not in this network namespace.
	State, NetDev string
	PNETID        ism.PNETID
	GIDs          []GID
}

// GID is an address of an RDMA port.
type GID = ism.GID

// rdmaExclusive reports whether each RDMA device belongs to one network namespace. It returns false if the kernel has no RDMA.
func rdmaExclusive() (bool, error) {
	h, err := netlink.NewHandle(unix.NETLINK_RDMA)
	if errors.Is(err, syscall.EPROTONOSUPPORT) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer h.Close()
	mode, err := h.RdmaSystemGetNetnsMode()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.EOPNOTSUPP) {
		return false, nil // the kernel is too old for the command and the mode
	}
	return mode == "exclusive", err
}

// stacked lists the kinds of interfaces that send through another interface, their link.
var stacked = []string{"vlan", "macvlan", "ipvlan"}

// readInterfaces lists the interfaces of the network namespace with their addresses.
func readInterfaces(s *Snapshot) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		s.unknown("network interfaces", err)
		return
	}
	defer h.Close()
	links, err := h.LinkList()
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		s.unknown("network interfaces", err)
		return
	}
	names := map[int]string{}
	for _, l := range links {
		names[l.Attrs().Index] = l.Attrs().Name
	}
	for _, l := range links {
		a := l.Attrs()
		i := Interface{
			Name: a.Name, Index: a.Index, Kind: l.Type(), MTU: a.MTU,
			Up: a.Flags&net.FlagUp != 0, Loopback: a.Flags&net.FlagLoopback != 0,
			// Drivers that cannot detect the carrier report unknown, and work.
			Carrier: a.OperState == netlink.OperUp || a.OperState == netlink.OperUnknown,
		}
		if slices.Contains(stacked, i.Kind) {
			i.Below = names[a.ParentIndex]
		}
		if v, ok := l.(*netlink.Vlan); ok {
			i.VLAN = v.VlanId
		}
		i.Addresses = readAddresses(h, s, l)
		s.Interfaces = append(s.Interfaces, i)
	}
}

func readAddresses(h *netlink.Handle, s *Snapshot, l netlink.Link) []netip.Prefix {
	list, err := h.AddrList(l, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, netlink.ErrDumpInterrupted) {
		s.unknown("addresses of "+l.Attrs().Name, err)
	}
	var out []netip.Prefix
	for _, a := range list {
		addr, ok := netip.AddrFromSlice(a.IP)
		bits, _ := a.Mask.Size()
		if ok && !addr.Unmap().IsLinkLocalUnicast() {
			out = append(out, netip.PrefixFrom(addr.Unmap(), bits))
		}
	}
	return out
}

// InterfaceNames lists the interfaces of the network namespace.
func InterfaceNames() []string {
	list, err := net.Interfaces()
	if err != nil {
		return nil
	}
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names
}
