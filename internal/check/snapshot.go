// SPDX-License-Identifier: Apache-2.0

// Package check finds out whether a host, and the path from it to a peer, can speak SMC, and why not.
//
// A Reader collects facts into a Snapshot. Conditions judge them: each is a pure function over a Snapshot, with what to
// say and what to do about it. Client and Server make a real connection and tell what moved its bytes.
package check

import (
	"net/netip"
	"slices"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
)

// Snapshot is what is known of a host at one moment. It holds facts; what they mean is for conditions to say.
type Snapshot struct {
	Kernel    Kernel
	Module    Module
	Sockets   Sockets
	Control   Control
	Identity  Identity
	Namespace Namespace
	// Settings holds sysctls by their names with dots. One that the kernel does not have is not there.
	Settings map[string]int
	// Interfaces are those of the network namespace.
	Interfaces []Interface
	// Adapters are RDMA and ISM devices, and PCI functions that would be some if they had a driver, or power.
	Adapters []ism.Device
	// Ports are those of RDMA devices.
	Ports []Port
	// ISM are the devices for SMC-D that the module knows.
	ISM []netlinksmc.Device
	// Table is the PNET table.
	Table pnet.Table
	Rules Rules
	// Fallbacks counts connections that fell back to TCP; nil if the module does not tell. Connections are those that
	// did not.
	Fallbacks   *netlinksmc.FallbackStats
	Connections uint64
	// Path is the way to a peer, nil if none was asked for.
	Path *Path
	// Live is what became of a connection to a peer, nil if none was tried.
	Live *Live
	// Unknown says what could not be found out, a line each.
	Unknown []string
}

// Kernel is the running kernel, and what it says about modules.
type Kernel struct {
	Release string
	// ModulesDisabled means that no module can be loaded any more until the next boot.
	ModulesDisabled bool
	// SignaturesForced means that only signed modules can be loaded.
	SignaturesForced bool
}

// Module is the AF_SMC module: the one that runs, and the one that is installed for this kernel.
type Module struct {
	// Loaded means that there is a module or built-in code of that name.
	Loaded, BuiltIn bool
	// Ours means that what is loaded is smckit's module.
	Ours                       bool
	Version, SrcVersion, Taint string
	// SMCR and SMCD say whether it was loaded with these switched on; nil if it has no such switch.
	SMCR, SMCD *bool
	// File is where the module is installed, empty if it is not. The others describe that file, and are empty where it
	// could not be read.
	File, FileVermagic, FileSrcVersion string
	FileSigned                         bool
	// Blocked is the line of modprobe's configuration that keeps the kernel from loading it, with its file.
	Blocked string
}

// Sockets says what became of making sockets; nil is success.
type Sockets struct {
	IPv4, IPv6, IPProto error
}

// Available says whether a program gets AF_SMC sockets.
func (s Sockets) Available() bool { return s.IPv4 == nil }

// Control says how the interfaces for administrators answer; nil is success.
type Control struct {
	Netlink, PNET, Diag error
	// Info is what the module says of itself; nil if it does not.
	Info *netlinksmc.SystemInfo
}

// Identity are the enterprise IDs of the host.
type Identity struct {
	// Known is false if the module does not tell.
	Known bool
	UEIDs []string
	SEID  *netlinksmc.SEID
}

// HasEID says whether there is an EID that version 2 can use.
func (i Identity) HasEID() bool { return len(i.UEIDs) > 0 || i.SEID != nil && i.SEID.Enabled }

// Namespace is the network namespace that all of this is about.
type Namespace struct {
	Initial bool
	// RDMAExclusive means that each RDMA device belongs to one network namespace only.
	RDMAExclusive bool
}

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
	// Below is the interface that this one is stacked on, empty if it is on none. VLAN is its VLAN ID, 0 for none.
	Below string
	VLAN  int
}

// Port is a port of an RDMA device.
type Port struct {
	Device   string
	Number   uint8
	RoCE     bool
	Software bool
	// State is "ACTIVE" and the like, NetDev the interface in this network namespace, empty if there is none.
	State, NetDev string
	PNETID        ism.PNETID
	GIDs          []GID
}

// GID is an address of an RDMA port.
type GID = ism.GID

// Rules are what filters packets, as far as it matters to SMC.
type Rules struct {
	// Readable is false if the caller may not read them.
	Readable bool
	// Strips are rules that take the option of SMC out of TCP's handshake; Drops those that drop RoCEv2.
	Strips, Drops []Rule
	// LegacyStrip means that the old iptables have loaded what can remove TCP options.
	LegacyStrip bool
	// IPsec is the number of IPsec policies.
	IPsec int
}

// Rule names a rule of nftables, or of iptables on top of it.
type Rule struct {
	Family, Table, Chain string
	Handle               uint64
}

// Path is the way to a peer.
type Path struct {
	// Host is what was asked for, Peer its address.
	Host string
	Peer netip.Addr
	// ResolveErr and RouteErr say why there is no address, or no route.
	ResolveErr, RouteErr error
	// Local means that the peer is this host.
	Local bool
	// Interface is where packets leave by, Source their address, Gateway the router; invalid if there is none.
	Interface       string
	Source, Gateway netip.Addr
	// MTU is that of the route, 0 if it has none of its own.
	MTU int
	// Neighbour is the state of the next hop: "reachable", "failed" and the like, empty if it is not known yet.
	Neighbour string
}

// Interface returns the interface with that name, or nil.
func (s *Snapshot) Interface(name string) *Interface {
	i := slices.IndexFunc(s.Interfaces, func(i Interface) bool { return i.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Interfaces[i]
}

// base returns the lowest interface below the one with that name, and the first VLAN on the way, as the module finds them.
// A bond is the lowest: it is what RDMA devices are bound to.
func (s *Snapshot) base(name string) (string, int) {
	vlan := 0
	// No stack is deeper than the kernel allows.
	for range 8 {
		i := s.Interface(name)
		if i == nil || i.Below == "" || i.Kind == "bond" {
			break
		}
		if vlan == 0 {
			vlan = i.VLAN
		}
		name = i.Below
	}
	return name, vlan
}

// pnetID returns the PNET ID by which connections that leave by an interface find a device.
func (s *Snapshot) pnetID(name string) string {
	base, _ := s.base(name)
	for _, n := range []string{base, name} {
		if i := s.Interface(n); i != nil && i.PNETID.ID != "" {
			return i.PNETID.ID
		}
	}
	return ""
}

// Setting returns a sysctl, or def if the kernel does not have it.
func (s *Snapshot) Setting(name string, def int) int {
	if v, ok := s.Settings[name]; ok {
		return v
	}
	return def
}

// on says whether a switch of the module is on, or does not exist.
func on(s *bool) bool { return s == nil || *s }
