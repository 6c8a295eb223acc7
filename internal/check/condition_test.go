// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"golang.org/x/sys/unix"
)

// healthy returns a host that meets no condition. It has a RoCE adapter with GIDs of both versions, on the network of its
// interface.
func healthy() *Snapshot {
	return &Snapshot{
		Kernel: Kernel{Release: "7.2.0"},
		Module: Module{
			Loaded: true, Ours: true, Version: "1.0", SrcVersion: "A", SMCR: new(true), SMCD: new(true),
			File: "/lib/modules/7.2.0/updates/smc.ko", FileVermagic: "7.2.0 SMP", FileSrcVersion: "A",
		},
		Control:   Control{Info: &netlinksmc.SystemInfo{Version: 2, Release: 1}},
		Identity:  Identity{Known: true, UEIDs: []string{"EID"}},
		Namespace: Namespace{Initial: true},
		Settings: map[string]int{
			"net.smc.rmem": 65536, "net.smc.wmem": 65536, "net.smc.smcr_testlink_time": 30, "net.smc.loopback": 2,
			"net.smc.limit_smc_hs": 0, "net.smc.smcr_max_send_wr": 16, "net.smc.smcr_max_recv_wr": 48, "net.smc.smcr_v1_rocev2": 0,
			"net.smc.smcr_max_links_per_lgr": 1, "net.ipv4.tcp_syncookies": 1,
		},
		Interfaces: []Interface{
			{Name: "lo", Index: 1, Kind: "device", Up: true, Carrier: true, Loopback: true, MTU: 65536, Addresses: prefixes("127.0.0.1/8")},
			{
				Name: "eth0", Index: 2, Kind: "device", Up: true, Carrier: true, MTU: 1500, Addresses: prefixes("10.0.0.1/24", "fd00::1/64"),
				PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
			},
		},
		Adapters: []ism.Device{{Kind: ism.KindRoCE, Name: "mlx5_0", Ports: []ism.Port{{Number: 1}}}},
		Ports: []Port{{
			Device: "mlx5_0", Number: 1, RoCE: true, State: "ACTIVE", NetDev: "eth0", PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceTable},
			GIDs: []GID{
				{Index: 0, Addr: netip.MustParseAddr("fe80::1"), NetDev: "eth0"},
				{Index: 1, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), RoCEv2: true, NetDev: "eth0"},
			},
		}},
		ISM:   []netlinksmc.Device{{CHID: chidLoopback, PCIID: "loopback-ism"}},
		Table: pnet.Table{{ID: "NET1", Eth: "eth0"}, {ID: "NET1", IB: "mlx5_0", Port: 1}},
		Rules: Rules{Readable: true},
	}
}

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// gone removes AF_SMC.
func gone(s *Snapshot) {
	s.Module = Module{}
	s.Sockets = Sockets{IPv4: unix.EAFNOSUPPORT, IPv6: unix.EAFNOSUPPORT, IPProto: unix.EPROTONOSUPPORT}
	s.Control, s.Identity, s.ISM, s.Table = Control{Netlink: netlinksmc.ErrNoModule}, Identity{}, nil, nil
	s.Settings = nil
	for i := range s.Interfaces {
		s.Interfaces[i].PNETID = ism.PNETID{}
	}
	s.Ports[0].PNETID = ism.PNETID{}
}

// installed removes AF_SMC and adds the file of a module.
func installed(s *Snapshot) {
	gone(s)
	s.Module.File, s.Module.FileVermagic = "/lib/smc.ko", "7.2.0 SMP"
}

// toPeer adds a path.
func toPeer(s *Snapshot) {
	s.Path = &Path{
		Host: "b", Peer: netip.MustParseAddr("10.0.0.2"), Interface: "eth0", Source: netip.MustParseAddr("10.0.0.1"),
		Neighbour: "reachable",
	}
}

// tried adds a test connection that used SMC-R, and changes it.
func tried(change func(l *Live)) func(*Snapshot) {
	return func(s *Snapshot) {
		toPeer(s)
		s.Live = &Live{
			Target: netip.MustParseAddrPort("10.0.0.2:37373"), Transport: Transport{Mode: "SMC-R", Version: "2.1"},
			Peer: &Hello{AFSMC: true, Transport: Transport{Mode: "SMC-R"}},
		}
		change(s.Live)
	}
}

// fell makes a test connection fall back to TCP for the reasons of this host and of the peer.
func fell(own, peers netlinksmc.Reason) func(l *Live) {
	return func(l *Live) {
		l.Transport = Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: own}}
		l.Peer.Transport = Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: peers}}
	}
}

func failing(f Failure, err error) func(*Snapshot) {
	return tried(func(l *Live) { l.Failure, l.Err, l.Transport, l.Peer = f, err, Transport{}, nil })
}

func port(change func(p *Port)) func(*Snapshot) {
	return func(s *Snapshot) { change(&s.Ports[0]) }
}

// secondPort adds an adapter on the same network.
func secondPort(s *Snapshot) {
	eth1, p := *s.Interface("eth0"), s.Ports[0]
	eth1.Name, eth1.Index, eth1.Addresses = "eth1", 3, prefixes("10.0.0.3/24")
	p.Device, p.NetDev = "mlx5_1", "eth1"
	p.GIDs = []GID{
		{Index: 0, Addr: netip.MustParseAddr("fe80::3"), NetDev: "eth1"},
		{Index: 1, Addr: netip.MustParseAddr("::ffff:10.0.0.3"), RoCEv2: true, NetDev: "eth1"},
	}
	s.Interfaces, s.Ports = append(s.Interfaces, eth1), append(s.Ports, p)
}

func eth0(change func(i *Interface)) func(*Snapshot) {
	return func(s *Snapshot) { change(s.Interface("eth0")) }
}

// withIVSHMEM adds an ivshmem device as pkg/ism describes it.
func withIVSHMEM(driver string, d ism.IVSHMEM) func(*Snapshot) {
	return func(s *Snapshot) {
		kind := ism.KindISM
		if driver != "" && driver != ism.FabricDriver || d.Fabric != nil && !*d.Fabric {
			kind = ism.KindOther
		}
		s.Adapters = append(s.Adapters, ism.Device{Kind: kind, Driver: driver, PCI: &ism.PCI{Address: "0000:00:05.0"}, IVSHMEM: &d})
	}
}

// withFabric adds a fabric that the module uses.
func withFabric(s *Snapshot) {
	withIVSHMEM(ism.FabricDriver, ism.IVSHMEM{Vectors: new(2)})(s)
	s.Control.Info.ISMv2 = true
	s.ISM = append(s.ISM, netlinksmc.Device{CHID: 0xff01, PCIID: "0000:00:05.0", Vendor: ism.IVSHMEMVendor, Device: ism.IVSHMEMDevice})
}

func setting(name string, v int) func(*Snapshot) { return func(s *Snapshot) { s.Settings[name] = v } }

// TestConditions meets each condition by one change to a healthy host, and checks that only the expected conditions are met.
func TestConditions(t *testing.T) {
	someErr := errors.New("some error")
	tests := []struct {
		id     string
		change func(*Snapshot)
		text   string // part of it
		also   string // further conditions that are met, by severity
	}{
		{id: "module-missing", change: gone, text: "kernel 7.2.0 has no AF_SMC module"},
		{id: "module-on-host", change: func(s *Snapshot) { gone(s); s.Setup.Container = true }, text: "this is a container"},
		{id: "module-blocked", change: func(s *Snapshot) { installed(s); s.Module.Blocked = "'blacklist smc' in /etc/x.conf" }, text: "'blacklist smc' in /etc/x.conf"},
		{id: "module-other-kernel", change: func(s *Snapshot) { installed(s); s.Module.FileVermagic = "6.1.0 SMP" }, text: "built for kernel 6.1.0, and this kernel is 7.2.0"},
		{id: "module-unsigned", change: func(s *Snapshot) { installed(s); s.Kernel.SignaturesForced = true }, text: "/lib/smc.ko has no signature"},
		{id: "modules-disabled", change: func(s *Snapshot) { installed(s); s.Kernel.ModulesDisabled = true }, text: "does not load modules"},
		{id: "module-not-loaded", change: installed, text: "/lib/smc.ko is installed"},
		{id: "module-stale", change: func(s *Snapshot) { s.Module.SrcVersion = "B" }, text: "differs from the installed one, /lib/modules"},
		{id: "module-forced", change: func(s *Snapshot) { s.Module.Taint = "OFE" }, text: "forced"},
		{id: "socket-refused", change: func(s *Snapshot) { s.Sockets.IPv4 = unix.EPERM }, text: "operation not permitted"},
		{id: "socket-failed", change: func(s *Snapshot) { s.Sockets.IPv4 = unix.ENOMEM }, text: "cannot allocate memory"},
		{id: "socket-ipv6", change: func(s *Snapshot) { s.Sockets.IPv6 = unix.EPROTONOSUPPORT }, text: "protocol not supported"},
		{id: "ipproto-absent", change: func(s *Snapshot) { s.Sockets.IPProto = unix.EPROTONOSUPPORT }, text: "IPPROTO_SMC"},
		{id: "netlink-absent", change: func(s *Snapshot) { s.Control.Netlink = someErr }, text: "some error"},
		{id: "pnet-absent", change: func(s *Snapshot) { s.Control.PNET = someErr }, text: "some error"},
		{id: "diag-absent", change: func(s *Snapshot) { s.Control.Diag = someErr }, text: "smcss does not work: some error"},
		{id: "smcr-off", change: func(s *Snapshot) { s.Module.SMCR = new(false) }, text: "smcr=0", also: "host-only"},
		{id: "smcd-off", change: func(s *Snapshot) { s.Module.SMCD = new(false) }, text: "smcd=0"},
		{id: "version-1-only", change: func(s *Snapshot) { s.Control.Info.Version = 1 }, text: "only version 1 of SMC"},

		{id: "no-transport", change: func(s *Snapshot) { setting("net.smc.loopback", 0)(s); s.Ports[0].State = "DOWN" }, text: "no device", also: "port-down loopback-off"},
		{id: "host-only", change: port(func(p *Port) { p.State = "INIT" }), text: "within this host only", also: "port-down"},
		{id: "rdma-none", change: func(s *Snapshot) { s.Ports, s.Adapters, s.Table, s.Interfaces[1].PNETID = nil, nil, nil, ism.PNETID{} }, text: "no RDMA device", also: "host-only"},
		{id: "rdma-namespace", change: func(s *Snapshot) {
			s.Ports, s.Adapters, s.Table, s.Interfaces[1].PNETID = nil, nil, nil, ism.PNETID{}
			s.Namespace = Namespace{RDMAExclusive: true}
		}, text: "netns exclusive", also: "host-only pnet-namespace"},
		{id: "rdma-not-roce", change: func(s *Snapshot) {
			s.Adapters = append(s.Adapters, ism.Device{Kind: ism.KindRDMA, Name: "siw0", NodeType: "RNIC"}, ism.Device{Kind: ism.KindRDMA, Name: "ib0"})
		}, text: "siw0 is an iWARP device"},
		{id: "rdma-driver", change: func(s *Snapshot) {
			s.Adapters = append(s.Adapters, ism.Device{Kind: ism.KindRoCE, Model: "E810-C", PCI: &ism.PCI{Address: "0000:01:00.0"}})
		}, text: "0000:01:00.0 (E810-C)"},
		{id: "device-off", change: func(s *Snapshot) {
			s.Adapters = append(s.Adapters, ism.Device{Kind: ism.KindOff, ZPCI: &ism.ZPCI{FID: 0x8ca}})
		}, text: "FID 8ca"},
		{id: "rdma-software", change: port(func(p *Port) { p.Software = true }), text: "mlx5_0 is soft-RoCE"},
		{id: "port-down", change: port(func(p *Port) { p.State = "DOWN" }), text: "port 1 of mlx5_0 is DOWN", also: "host-only"},
		{id: "port-no-interface", change: port(func(p *Port) { p.NetDev = "" }), text: "port 1 of mlx5_0"},
		{id: "interface-down", change: eth0(func(i *Interface) { i.Up = false }), text: "eth0 of RDMA device mlx5_0", also: "host-only"},
		{id: "interface-no-carrier", change: eth0(func(i *Interface) { i.Carrier = false }), text: "eth0 of RDMA device mlx5_0"},
		{id: "interface-no-address", change: eth0(func(i *Interface) { i.Addresses = nil }), text: "eth0", also: "host-only"},
		{id: "port-no-gid", change: port(func(p *Port) { p.GIDs = nil }), text: "port 1 of mlx5_0", also: "host-only"},
		{id: "port-no-ipv4-gid", change: port(func(p *Port) { p.GIDs = p.GIDs[:1] }), text: "port 1 of mlx5_0"},
		{id: "port-v2-only", change: port(func(p *Port) { p.GIDs = p.GIDs[1:] }), text: "port 1 of mlx5_0"},
		{id: "port-mtu", change: eth0(func(i *Interface) { i.MTU = 1000 }), text: "MTU of eth0 is 1000"},
		{id: "pnet-differs", change: port(func(p *Port) { p.PNETID.ID = "NET2" }), text: "has the PNET ID NET2, and its interface eth0 has NET1", also: "host-only"},
		{id: "pnet-port-none", change: port(func(p *Port) { p.PNETID = ism.PNETID{} }), text: "eth0 has the PNET ID NET1", also: "host-only"},
		{id: "pnet-interface-none", change: eth0(func(i *Interface) { i.PNETID = ism.PNETID{} }), text: "its interface eth0 has none"},
		{id: "pnet-lonely", change: func(s *Snapshot) {
			s.Interfaces = append(s.Interfaces, Interface{Name: "eth1", PNETID: ism.PNETID{ID: "NET7"}})
		}, text: "eth1 has the PNET ID NET7"},
		{id: "pnet-no-such-interface", change: func(s *Snapshot) { s.Table = append(s.Table, pnet.Entry{ID: "NET1", Eth: "eth7"}) }, text: "gives interface eth7 the PNET ID NET1"},
		{id: "pnet-no-such-device", change: func(s *Snapshot) { s.Table = append(s.Table, pnet.Entry{ID: "NET1", IB: "mlx5_0", Port: 2}) }, text: "gives device mlx5_0 the PNET ID NET1"},
		{id: "pnet-namespace", change: func(s *Snapshot) { s.Namespace.Initial = false }, text: "not the initial"},
		{id: "ism-no-pnet", change: func(s *Snapshot) {
			s.ISM = append(s.ISM, netlinksmc.Device{PCIID: "0000:00:00.0", CHID: 1})
		}, text: "ISM device 0000:00:00.0"},
		{id: "ism-pnet-absent", change: func(s *Snapshot) {
			withFabric(s)
			s.ISM[1].Ports = []netlinksmc.Port{{PNETID: "NET7"}}
		}, text: "ISM device 0000:00:05.0 has the PNET ID NET7"},
		{id: "loopback-off", change: setting("net.smc.loopback", 0), text: "net.smc.loopback=0"},
		{id: "loopback-namespace", change: setting("net.smc.loopback", 1), text: "net.smc.loopback=1"},

		{id: "fabric-module", change: func(s *Snapshot) {
			withIVSHMEM("", ism.IVSHMEM{})(s)
			s.Module.Ours = false
		}, text: "0000:00:05.0 has no driver"},
		{id: "fabric-module", change: func(s *Snapshot) { withIVSHMEM("", ism.IVSHMEM{Fabric: new(true)})(s); gone(s) }, text: "is not loaded", also: "module-missing"},
		{id: "fabric-vectors", change: withIVSHMEM("", ism.IVSHMEM{Vectors: new(1), Fabric: new(true)}), text: "0000:00:05.0 has 1 interrupts, and a fabric needs 2"},
		{id: "fabric-vectors", change: withIVSHMEM("", ism.IVSHMEM{Vectors: new(0)}), text: "has 0 interrupts"},
		{id: "fabric-unused", change: withIVSHMEM("", ism.IVSHMEM{}), text: "does not use ivshmem device 0000:00:05.0"},
		{id: "fabric-unused", change: withIVSHMEM("", ism.IVSHMEM{Vectors: new(2), Fabric: new(true)}), text: "does not use ivshmem device 0000:00:05.0"},
		{id: "smcd-off", change: func(s *Snapshot) {
			withIVSHMEM("", ism.IVSHMEM{})(s)
			s.Module.SMCD = new(false)
		}, text: "smcd=0"},
		{id: "fabric-header", change: withIVSHMEM("", ism.IVSHMEM{Vectors: new(0), Fabric: new(false)}), text: "the memory of ivshmem device 0000:00:05.0 is no fabric"},
		{id: "fabric-driver", change: withIVSHMEM("vfio-pci", ism.IVSHMEM{}), text: "0000:00:05.0 belongs to driver vfio-pci"},
		{id: "fabric-no-eid", change: func(s *Snapshot) { withFabric(s); s.Identity.UEIDs = nil }, text: "ISM device 0000:00:05.0 is a fabric", also: "eid-none"},

		{id: "second-link-off", change: secondPort, text: "over port 1 of mlx5_0 could have a second link over port 1 of mlx5_1"},
		{id: "second-link-no-port", change: setting("net.smc.smcr_max_links_per_lgr", 2), text: "port 1 of mlx5_0 have one link: this host has no other usable RDMA port with PNET ID NET1"},
		{id: "second-link-no-port", change: func(s *Snapshot) {
			setting("net.smc.smcr_max_links_per_lgr", 2)(s)
			s.Table, s.Ports[0].PNETID, s.Interfaces[1].PNETID = nil, ism.PNETID{}, ism.PNETID{}
		}, text: "no other usable RDMA port in the subnet of eth0"},
		{id: "second-link-routed", change: func(s *Snapshot) {
			setting("net.smc.smcr_max_links_per_lgr", 2)(s)
			toPeer(s)
			s.Path.Gateway = netip.MustParseAddr("10.0.0.9")
		}, text: "10.0.0.2 is behind router 10.0.0.9: link groups", also: "path-routed"},

		{id: "eid-none", change: func(s *Snapshot) { s.Identity.UEIDs = nil }, text: "no enterprise ID"},
		{id: "seid-off", change: func(s *Snapshot) { s.Identity.SEID = &netlinksmc.SEID{} }, text: "the system EID is disabled"},
		{id: "buffers-small", change: setting("net.smc.wmem", 16384), text: "net.smc.wmem is 16384 bytes"},
		{id: "queues-small", change: setting("net.smc.smcr_max_recv_wr", 3), text: "smcr_max_recv_wr is 3"},
		{id: "testlink-off", change: setting("net.smc.smcr_testlink_time", 0), text: "not tested"},
		{id: "handshake-limit", change: setting("net.smc.limit_smc_hs", 1), text: "limit_smc_hs=1"},
		{id: "syncookies-always", change: setting("net.ipv4.tcp_syncookies", 2), text: "tcp_syncookies=2"},
		{id: "fallbacks", change: func(s *Snapshot) {
			s.Connections = 4
			s.Fallbacks = &netlinksmc.FallbackStats{
				ClientTotal: 2, ServerTotal: 1,
				Client: []netlinksmc.FallbackCount{{Reason: netlinksmc.ReasonPeerNoSMC, Count: 1}, {Reason: 0x03070000, Count: 2}},
			}
		}, text: "3 connections fell back to TCP and 4 used SMC so far; the most frequent reason: the hosts are not in the same IP subnet"},
		{id: "rule-strips-option", change: func(s *Snapshot) { s.Rules.Strips = []Rule{{"ip", "filter", "output", 7}} }, text: "rule 7 in chain output of table ip filter"},
		{id: "rule-legacy-strip", change: func(s *Snapshot) { s.Rules.LegacyStrip = true }, text: "TCPOPTSTRIP"},
		{id: "rule-drops-roce", change: func(s *Snapshot) { s.Rules.Drops = []Rule{{"inet", "f", "in", 3}} }, text: "rule 3 in chain in of table inet f drops RoCEv2"},
		{id: "rules-unreadable", change: func(s *Snapshot) { s.Rules.Readable = false }, text: "not checked"},
		{id: "ipsec", change: func(s *Snapshot) { s.Module.Ours, s.Rules.IPsec = false, 2 }, text: "IPsec policies (2), which do not encrypt the data of SMC"},
		{id: "ipsec-tcp", change: func(s *Snapshot) { s.Rules.IPsec = 2 }, text: "IPsec policies (2): connections that they apply to are TCP"},

		{id: "path-no-address", change: func(s *Snapshot) { s.Path = &Path{Host: "nowhere", ResolveErr: someErr} }, text: "no address of nowhere was found: some error"},
		{id: "path-no-route", change: func(s *Snapshot) { toPeer(s); s.Path.RouteErr = unix.ENETUNREACH }, text: "10.0.0.2: network is unreachable"},
		{id: "path-no-device", change: func(s *Snapshot) { toPeer(s); s.Ports[0].State = "DOWN" }, text: "10.0.0.2 by eth0", also: "port-down"},
		{id: "path-neighbour", change: func(s *Snapshot) { toPeer(s); s.Path.Neighbour = "failed" }, text: "neighbour failed"},
		{id: "path-routed", change: func(s *Snapshot) { toPeer(s); s.Path.Gateway = netip.MustParseAddr("10.0.0.9") }, text: "behind router 10.0.0.9"},
		{id: "path-ipv6", change: func(s *Snapshot) {
			toPeer(s)
			s.Path.Peer, s.Path.Source = netip.MustParseAddr("fd00::2"), netip.MustParseAddr("fd00::1")
		}, text: "fd00::2 is an IPv6 address"},
		{id: "path-mtu", change: func(s *Snapshot) { toPeer(s); s.Path.MTU = 1400 }, text: "MTU of 1400, and interface eth0 has one of 1500"},
		{id: "path-vlan", change: func(s *Snapshot) {
			toPeer(s)
			s.Interfaces = append(s.Interfaces, Interface{Name: "eth0.7", Kind: "vlan", Below: "eth0", VLAN: 7, Up: true, Addresses: prefixes("10.0.0.1/24")})
			s.Path.Interface = "eth0.7"
		}, text: "eth0.7 is in VLAN 7", also: "path-no-device"},
		{id: "path-virtual", change: func(s *Snapshot) {
			toPeer(s)
			s.Interfaces = append(s.Interfaces, Interface{Name: "br0", Kind: "bridge", Up: true, Addresses: prefixes("10.0.0.1/24")})
			s.Path.Interface = "br0"
		}, text: "leave by interface br0 of type bridge", also: "path-no-device"},

		{id: "live-refused", change: failing(FailRefused, unix.ECONNREFUSED), text: "nothing listens at 10.0.0.2:37373"},
		{id: "live-unreachable", change: failing(FailUnreachable, unix.EHOSTUNREACH), text: "no route to host"},
		{id: "live-timeout", change: failing(FailTimeout, unix.ETIMEDOUT), text: "10.0.0.2:37373 does not answer"},
		{id: "live-handshake", change: failing(FailHandshake, unix.ECONNRESET), text: "connection reset by peer"},
		{id: "live-broken", change: tried(func(l *Live) { l.Failure, l.Err = FailBroken, unix.ECONNRESET }), text: "broke: connection reset"},
		{id: "live-corrupt", change: tried(func(l *Live) { l.Failure, l.Err = FailCorrupt, someErr }), text: "some error"},
		{id: "live-silent", change: tried(func(l *Live) { l.Failure, l.Peer = FailSilent, nil }), text: "(SMC-R), and sends nothing back"},
		{id: "live-stranger", change: tried(func(l *Live) { l.Failure, l.Err, l.Peer = FailStranger, errors.New("it answered \"SSH\""), nil }), text: `it answered "SSH"`},
		{id: "live-mode-unknown", change: tried(func(l *Live) { l.Transport, l.TransportErr = Transport{}, someErr }), text: "some error"},
		{id: "live-peer-without-smc", change: tried(func(l *Live) {
			l.Transport, l.Peer = Transport{Mode: "TCP", Fallback: &netlinksmc.Fallback{Reason: netlinksmc.ReasonPeerNoSMC}}, &Hello{Transport: Transport{Mode: "TCP"}}
		}), text: "has no AF_SMC"},
		{id: "live-option-lost", change: tried(fell(netlinksmc.ReasonPeerNoSMC, netlinksmc.ReasonPeerNoSMC)), text: "on the way to the peer"},
		{id: "live-option-lost", change: tried(fell(netlinksmc.ReasonPeerNoSMC, 0)), text: "on the way back"},
		{id: "live-no-option", change: tried(func(l *Live) { fell(netlinksmc.ReasonPeerNoSMC, 0)(l); l.Peer = nil }), text: "10.0.0.2:37373 did not announce SMC"},
		{id: "live-declined-here", change: tried(fell(0x03030002, netlinksmc.ReasonPeerDeclined)), text: "no usable RDMA device (0x03030002 NOSMCRDEV)"},
		{id: "live-declined-there", change: tried(fell(netlinksmc.ReasonPeerDeclined, 0x03070000)), text: "not in the same IP subnet"},
		{id: "live-declined-there", change: tried(func(l *Live) {
			fell(netlinksmc.ReasonPeerDeclined, 0)(l)
			l.Peer, l.Transport.Fallback.PeerDiagnosis = nil, 0x1234
		}), text: "unknown reason (0x00001234)"},
		{id: "live-tcp", change: tried(func(l *Live) { fell(netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonPeerDeclined)(l) }), text: "neither end reports a reason"},
	}
	if f := healthy().Findings(); len(f) > 0 {
		t.Errorf("a healthy host: %+v", f)
	}
	member := healthy()
	if withFabric(member); len(member.Findings()) > 0 {
		t.Errorf("a healthy guest with a fabric: %+v", member.Findings())
	}
	tested := map[string]bool{}
	for _, tt := range tests {
		tested[tt.id] = true
		t.Run(tt.id, func(t *testing.T) {
			s := healthy()
			tt.change(s)
			var ids []string
			for _, f := range s.Findings() {
				ids = append(ids, f.ID)
				if f.ID == tt.id && len(ids) == slices.Index(ids, tt.id)+1 && !strings.Contains(f.Text, tt.text) {
					t.Errorf("the text is %q, not %q", f.Text, tt.text)
				}
				if text := f.Text + f.Remedy; strings.Contains(text, "%!") || strings.ContainsAny(text, "\n") {
					t.Errorf("%q", text)
				}
			}
			want := append(strings.Fields(tt.also), tt.id)
			slices.Sort(want)
			slices.Sort(ids)
			if diff := cmp.Diff(want, slices.Compact(ids)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, c := range Conditions() {
		if !tested[c.ID] {
			t.Errorf("condition %s is not tested", c.ID)
		}
	}
}

// TestTexts checks the form of the texts of conditions.
func TestTexts(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Conditions() {
		if seen[c.ID] {
			t.Errorf("two conditions %s", c.ID)
		}
		seen[c.ID] = true
		for _, text := range []string{c.Text, c.Remedy} {
			if text == "" || strings.HasSuffix(text, ".") || strings.ContainsAny(text, "\n\t") || len(text) > 140 {
				t.Errorf("%s: %q", c.ID, text)
			}
		}
	}
	if len(seen) < 40 {
		t.Errorf("%d conditions", len(seen))
	}
}

// TestLiveOnly checks that conditions of live tests are not met without one.
func TestLiveOnly(t *testing.T) {
	for _, c := range liveConditions {
		if !(Finding{ID: c.ID}).Live() || len(c.Find(healthy())) > 0 {
			t.Errorf("%s without a connection", c.ID)
		}
	}
}
