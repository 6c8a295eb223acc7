// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/ism"
)

// smallMTU is the smallest MTU that has room for an RDMA packet of 1024 bytes and the headers of RoCEv2.
const smallMTU = 1024 + 64

// deviceConditions are about devices, their interfaces and their PNET IDs.
var deviceConditions = []Condition{
	{
		ID: "no-transport", Severity: Error,
		Text:   "no device of this host can carry SMC: every connection will be TCP",
		Remedy: "see the warnings: a device is missing, is down, or does not match the PNET ID of an interface",
		Find: func(s *Snapshot) []Values {
			return met(s.Path == nil && s.Sockets.Available() && len(s.Choices()) == 0)
		},
	},
	{
		ID: "host-only", Severity: Warning,
		Text:   "SMC is possible within this host only",
		Remedy: "the other warnings say what connections to other hosts lack",
		Find: func(s *Snapshot) []Values {
			choices := s.Choices()
			return met(s.Path == nil && len(choices) > 0 && !remote(choices))
		},
	},
	{
		ID: "rdma-none", Severity: Warning,
		Text:   "there is no RDMA device",
		Remedy: "install a RoCE adapter and its driver; without one, for tests (not with Linux 6.1's module): rdma link add rxe0 type rxe netdev INTERFACE",
		Find: func(s *Snapshot) []Values {
			return met(len(s.Ports) == 0 && len(s.adapters(ism.KindRoCE)) == 0 && len(s.ISM) < 2 && !s.exclusive())
		},
	},
	{
		ID: "rdma-namespace", Severity: Warning,
		Text:   "no RDMA device belongs to this network namespace, and the host shares none (rdma system: netns exclusive)",
		Remedy: "move a device to it: 'rdma dev set DEVICE netns NAME', or share all devices: 'rdma system set netns shared'",
		Find:   func(s *Snapshot) []Values { return met(s.exclusive()) },
	},
	{
		ID: "rdma-not-roce", Severity: Warning,
		Text:   "RDMA device %[1]s is an %[2]s device, which SMC-R cannot use",
		Remedy: "SMC-R requires RoCE: switch the adapter's ports to Ethernet, or use another adapter",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.adapters(ism.KindRDMA) {
				protocol := "InfiniBand"
				if d.NodeType == "RNIC" {
					protocol = "iWARP"
				}
				out = append(out, Values{d.Name, protocol})
			}
			return out
		},
	},
	{
		ID: "rdma-driver", Severity: Warning,
		Text:   "RoCE adapter %[1]s (%[2]s) has no RDMA device",
		Remedy: "load its RDMA driver, such as mlx5_ib, bnxt_re or irdma; for a virtual function, allow RoCE on the host",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.adapters(ism.KindRoCE) {
				if d.Name == "" && d.PCI != nil {
					out = append(out, Values{d.ID(), d.Model})
				}
			}
			return out
		},
	},
	{
		ID: "device-off", Severity: Warning,
		Text:   "%[1]s is switched off",
		Remedy: "'smc_rnics -a' shows it, 'smc_rnics -e' switches it on",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.adapters(ism.KindOff) {
				out = append(out, Values{d.ID()})
			}
			return out
		},
	},
	{
		ID: "rdma-software", Severity: Info,
		Text:   "%[1]s is soft-RoCE: SMC-R works over it, and is slower than TCP",
		Remedy: "use soft-RoCE for tests only",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, p := range s.Ports {
				if v := (Values{p.Device}); p.Software && p.RoCE && !slices.ContainsFunc(out, func(o Values) bool { return o[0] == v[0] }) {
					out = append(out, v)
				}
			}
			return out
		},
	},
	{
		ID: "port-down", Severity: Warning,
		Text:   "port %[1]d of %[2]s is %[3]s",
		Remedy: "check the cable and the switch, and that the interface of the port is up: 'smc_rnics', 'ip link'",
		Find: eachPort(func(_ *Snapshot, p *Port) Values {
			if p.State == "ACTIVE" {
				return nil
			}
			return Values{p.Number, p.Device, cmp.Or(p.State, "in an unknown state")}
		}),
	},
	{
		ID: "port-no-interface", Severity: Warning,
		Text:   "port %[1]d of %[2]s has no network interface in this network namespace",
		Remedy: "run smc_chk in the namespace of its interface (-N NAME), or move the interface to this one: 'ip link set DEV netns NAME'",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if s.Interface(p.NetDev) != nil {
				return nil
			}
			return Values{p.Number, p.Device}
		}),
	},
	{
		ID: "interface-down", Severity: Warning,
		Text:   "interface %[1]s of RDMA device %[2]s is down",
		Remedy: "ip link set %[1]s up",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if i := s.Interface(p.NetDev); i != nil && !i.Up {
				return Values{i.Name, p.Device}
			}
			return nil
		}),
	},
	{
		ID: "interface-no-carrier", Severity: Warning,
		Text:   "interface %[1]s of RDMA device %[2]s is up, and has no carrier",
		Remedy: "check the cable, and the device at its other end",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if i := s.Interface(p.NetDev); i != nil && i.Up && !i.Carrier {
				return Values{i.Name, p.Device}
			}
			return nil
		}),
	},
	{
		ID: "interface-no-address", Severity: Warning,
		Text:   "interface %[1]s of RDMA device %[2]s has no IP address: no connection leaves by it",
		Remedy: "add an address: ip addr add ADDRESS/LENGTH dev %[1]s",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			i := s.Interface(p.NetDev)
			if i == nil || !i.Up || s.addressed(i.Name) {
				return nil
			}
			return Values{i.Name, p.Device}
		}),
	},
	{
		ID: "port-no-gid", Severity: Warning,
		Text:   "port %[1]d of %[2]s has no GID",
		Remedy: "set its interface up: 'ip link set DEV up'; if it is up, look at 'dmesg' for errors of the driver",
		Find: eachPort(func(_ *Snapshot, p *Port) Values {
			if len(p.GIDs) > 0 {
				return nil
			}
			return Values{p.Number, p.Device}
		}),
	},
	{
		ID: "port-no-ipv4-gid", Severity: Warning,
		Text:   "port %[1]d of %[2]s has no RoCEv2 GID of an IPv4 address, which SMC-R version 2 requires",
		Remedy: "give its interface an IPv4 address",
		Find: eachPort(func(_ *Snapshot, p *Port) Values {
			good := func(g GID) bool { return g.RoCEv2 && g.Addr.Is4In6() }
			if len(p.GIDs) == 0 || slices.ContainsFunc(p.GIDs, good) {
				return nil
			}
			return Values{p.Number, p.Device}
		}),
	},
	{
		ID: "port-v2-only", Severity: Info,
		Text:   "all GIDs of port %[1]d of %[2]s are RoCEv2: SMC-R version 1 cannot use it",
		Remedy: "use version 2, which requires an enterprise ID on both hosts; if both have smckit's module, net.smc.smcr_v1_rocev2=1 on both helps too",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if len(p.GIDs) == 0 || s.v1OverV2() || slices.ContainsFunc(p.GIDs, func(g GID) bool { return !g.RoCEv2 }) {
				return nil
			}
			return Values{p.Number, p.Device}
		}),
	},
	{
		ID: "port-mtu", Severity: Warning,
		Text:   "the MTU of %[1]s is %[2]d: RDMA packets of %[3]s must be small, which is slow",
		Remedy: "on both hosts: ip link set %[1]s mtu 1500, or the largest MTU of the network",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if i := s.Interface(p.NetDev); i != nil && i.MTU < smallMTU {
				return Values{i.Name, i.MTU, p.Device}
			}
			return nil
		}),
	},
	{
		ID: "pnet-differs", Severity: Warning,
		Text:   "port %[1]d of %[2]s has the PNET ID %[3]s, and its interface %[4]s has %[5]s",
		Remedy: "give both the same PNET ID: smc_pnet add %[5]s ib %[2]s %[1]d",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			id := s.pnetID(p.NetDev)
			if id == "" || p.PNETID.ID == "" || id == p.PNETID.ID {
				return nil
			}
			return Values{p.Number, p.Device, p.PNETID.ID, p.NetDev, id}
		}),
	},
	{
		ID: "pnet-port-none", Severity: Warning,
		Text:   "interface %[4]s has the PNET ID %[3]s, and port %[1]d of its RDMA device %[2]s has none: the port is not used",
		Remedy: "smc_pnet add %[3]s ib %[2]s %[1]d",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			id := s.pnetID(p.NetDev)
			if id == "" || p.PNETID.ID != "" {
				return nil
			}
			return Values{p.Number, p.Device, id, p.NetDev}
		}),
	},
	{
		ID: "pnet-interface-none", Severity: Info,
		Text:   "port %[1]d of %[2]s has the PNET ID %[3]s, and its interface %[4]s has none",
		Remedy: "give a PNET ID to both or to neither, and do the same on all hosts: smc_pnet add %[3]s eth %[4]s",
		Find: eachPort(func(s *Snapshot, p *Port) Values {
			if p.PNETID.ID == "" || s.Interface(p.NetDev) == nil || s.pnetID(p.NetDev) != "" {
				return nil
			}
			return Values{p.Number, p.Device, p.PNETID.ID, p.NetDev}
		}),
	},
	{
		ID: "pnet-lonely", Severity: Warning,
		Text:   "interface %[1]s has the PNET ID %[2]s, and no RDMA or ISM device has it: connections that leave by the interface are TCP",
		Remedy: "give a device on the same physical network this PNET ID: smc_pnet add %[2]s ib DEVICE PORT",
		Find:   lonely,
	},
	{
		ID: "pnet-no-such-interface", Severity: Warning,
		Text:   "the PNET table gives interface %[1]s the PNET ID %[2]s, and there is no such interface",
		Remedy: "correct the name: smc_pnet del %[2]s eth %[1]s, smc_pnet add %[2]s eth NAME",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, e := range s.Table {
				if e.IsEth() && len(s.Interfaces) > 0 && s.Interface(e.Eth) == nil {
					out = append(out, Values{e.Eth, e.ID})
				}
			}
			return out
		},
	},
	{
		ID: "pnet-no-such-device", Severity: Warning,
		Text:   "the PNET table gives device %[1]s the PNET ID %[2]s, and there is no such RDMA or ISM device, or port",
		Remedy: "correct the name: smc_pnet del %[2]s ib %[1]s, smc_pnet add %[2]s ib NAME PORT; 'smc_rnics' lists names",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, e := range s.Table {
				if !e.IsEth() && !s.hasDevice(e.IB, e.Port) {
					out = append(out, Values{e.IB, e.ID})
				}
			}
			return out
		},
	},
	{
		ID: "pnet-namespace", Severity: Info,
		Text:   "this is not the initial network namespace: PNET IDs of RDMA devices are set in the initial one, those of interfaces in this one",
		Remedy: "run 'smc_pnet add ... ib' in the initial namespace, and 'smc_pnet -N NAME add ... eth' for this one",
		Find:   func(s *Snapshot) []Values { return met(s.Sockets.Available() && !s.Namespace.Initial) },
	},
	{
		ID: "ism-no-pnet", Severity: Warning,
		Text:   "ISM device %[1]s has no PNET ID: SMC-D version 1 cannot use it",
		Remedy: "give it the PNET ID of the interface that leads to the same system: smc_pnet add ID ib %[1]s",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.ISM {
				if d.CHID < chidEmulated && pnetOfISM(&d) == "" {
					out = append(out, Values{d.PCIID})
				}
			}
			return out
		},
	},
	{
		ID: "ism-pnet-absent", Severity: Warning,
		Text:   "ISM device %[1]s has the PNET ID %[2]s, and no interface has it: connections that begin here do not use the device",
		Remedy: "give it to the interface that leads to the same system: smc_pnet add %[2]s eth INTERFACE",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.ISM {
				if !s.offers(&d) {
					out = append(out, Values{d.PCIID, pnetOfISM(&d)})
				}
			}
			return out
		},
	},
	{
		ID: "loopback-off", Severity: Warning,
		Text:   "connections within this host do not use SMC-D (net.smc.loopback=0)",
		Remedy: "switch it on: smcd loopback on",
		Find:   func(s *Snapshot) []Values { return met(s.Setting("net.smc.loopback", 2) == 0) },
	},
	{
		ID: "loopback-namespace", Severity: Info,
		Text:   "connections between network namespaces of this host do not use SMC-D (net.smc.loopback=1)",
		Remedy: "switch it on: smcd loopback on",
		Find:   func(s *Snapshot) []Values { return met(s.Setting("net.smc.loopback", 2) == 1) },
	},
}

// eachPort makes a condition about each port of a RoCE device. find returns nil if a port does not meet the condition.
func eachPort(find func(s *Snapshot, p *Port) Values) func(*Snapshot) []Values {
	return func(s *Snapshot) []Values {
		var out []Values
		for i := range s.Ports {
			if p := &s.Ports[i]; p.RoCE {
				if v := find(s, p); v != nil {
					out = append(out, v)
				}
			}
		}
		return out
	}
}

// exclusive reports whether the network namespace has no RDMA devices because they belong to other namespaces.
func (s *Snapshot) exclusive() bool {
	return s.Namespace.RDMAExclusive && len(s.Ports) == 0 && !s.Namespace.Initial
}

// addressed reports whether an interface, or another one stacked on it, has an address.
func (s *Snapshot) addressed(name string) bool {
	return slices.ContainsFunc(s.Interfaces, func(i Interface) bool {
		base, _ := s.base(i.Name)
		return base == name && len(i.Addresses) > 0
	})
}

// lonely finds interfaces with a PNET ID that no device has.
func lonely(s *Snapshot) []Values {
	var out []Values
	for _, i := range s.Interfaces {
		id := i.PNETID.ID
		if id == "" {
			continue
		}
		has := slices.ContainsFunc(s.Ports, func(p Port) bool {
			// If the interface's own port lacks the ID, pnet-port-none reports it.
			return p.PNETID.ID == id || p.RoCE && p.NetDev == i.Name
		})
		for _, d := range s.ISM {
			has = has || pnetOfISM(&d) == id
		}
		if !has {
			out = append(out, Values{i.Name, id})
		}
	}
	return out
}

// hasDevice reports whether the device, or port, of an entry in the PNET table exists. The kernel knows more names of ISM
// devices than sysfs shows.
func (s *Snapshot) hasDevice(name string, port uint8) bool {
	for _, d := range s.Adapters {
		isIt := d.Name == name || d.PCI != nil && strings.EqualFold(d.PCI.Address, name)
		if isIt && (len(d.Ports) == 0 || slices.ContainsFunc(d.Ports, func(p ism.Port) bool { return p.Number == port })) {
			return true
		}
	}
	for _, d := range s.ISM {
		if d.PCIID == name {
			return true
		}
	}
	return false
}

// isIPv6 reports whether an address is an IPv6 address that does not map an IPv4 address.
func isIPv6(a netip.Addr) bool { return a.IsValid() && !a.Unmap().Is4() }
