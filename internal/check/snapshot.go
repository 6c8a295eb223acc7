// SPDX-License-Identifier: Apache-2.0

// Package check finds out whether a host, and the path from it to a peer, can use SMC, and why not.
//
// A Reader collects facts into a Snapshot. Conditions judge them: each is a pure function of a Snapshot, with a description of
// the fault and a remedy. Client and Server make a real connection and find out its transport.
package check

import (
	"slices"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
)

// Snapshot contains the facts about a host at one moment. Conditions judge them.
type Snapshot struct {
	Kernel Kernel
	Module Module
	// Setup is where this host gets modules from.
	Setup     catalogue.Setup
	Sockets   Sockets
	Control   Control
	Identity  Identity
	Namespace Namespace
	// Settings contains sysctls by their names with dots. It does not contain sysctls that the kernel lacks.
	Settings map[string]int
	// Interfaces are the interfaces of the network namespace.
	Interfaces []Interface
	// Adapters are RDMA and ISM devices, and PCI functions that would be such devices if they had a driver or were switched on.
	Adapters []ism.Device
	// Ports are the ports of RDMA devices.
	Ports []Port
	// ISM are the SMC-D devices that the module knows.
	ISM []netlinksmc.Device
	// Table is the PNET table.
	Table pnet.Table
	Rules Rules
	// Fallbacks counts connections that fell back to TCP; it is nil if the module does not report them. Connections counts
	// those that did not fall back.
	Fallbacks   *netlinksmc.FallbackStats
	Connections uint64
	// Path is the path to a peer, nil if the user has not named one.
	Path *Path
	// Live is the result of a test connection to a peer, nil if there was none.
	Live *Live
	// Unknown has a line for each fact that could not be read.
	Unknown []string
}

// Kernel and Module are the facts by which package catalogue finds out why a kernel has no AF_SMC.
type (
	Kernel = catalogue.Kernel
	Module = catalogue.Module
)

// Sockets contains the errors of making sockets, nil for success.
type Sockets struct {
	IPv4, IPv6, IPProto error
}

// Available reports whether a program gets AF_SMC sockets.
func (s Sockets) Available() bool { return s.IPv4 == nil }

// Control contains the errors of the interfaces for administrators, nil for success.
type Control struct {
	Netlink, PNET, Diag error
	// Info is the module's description of itself, nil if it does not provide one.
	Info *netlinksmc.SystemInfo
}

// Identity are the enterprise IDs of the host.
type Identity struct {
	// Known is false if the module does not report the IDs.
	Known bool
	UEIDs []string
	SEID  *netlinksmc.SEID
}

// HasEID reports whether there is an EID that version 2 can use.
func (i Identity) HasEID() bool { return len(i.UEIDs) > 0 || i.SEID != nil && i.SEID.Enabled }

// Namespace describes the network namespace of the snapshot.
type Namespace struct {
	Initial bool
	// RDMAExclusive means that each RDMA device belongs to one network namespace only.
	RDMAExclusive bool
}

// Interface returns the interface with that name, or nil.
func (s *Snapshot) Interface(name string) *Interface {
	i := slices.IndexFunc(s.Interfaces, func(i Interface) bool { return i.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Interfaces[i]
}

// base returns the lowest interface below the one with that name, and the ID of the first VLAN on the way down to it, by the
// rules of the module. The module stops at a bond, because RDMA devices are bound to it.
func (s *Snapshot) base(name string) (string, int) {
	vlan := 0
	// The kernel allows at most 8 levels of stacked interfaces.
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

// enabled reports whether a switch of the module is on, or does not exist.
func enabled(s *bool) bool { return s == nil || *s }
