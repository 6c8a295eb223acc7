// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"slices"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// pathConditions are about the path to a peer, if the user has named one.
var pathConditions = []Condition{
	{
		ID: "path-no-address", Severity: Error,
		Text:   "no address of %[1]s was found: %[2]v",
		Remedy: "check the name and DNS, or use the address instead of the name",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.ResolveErr == nil {
				return nil
			}
			return Values{p.Host, p.ResolveErr}
		}),
	},
	{
		ID: "path-no-route", Severity: Error,
		Text:   "there is no route to %[1]s: %[2]v",
		Remedy: "add a route, or set an interface up; 'ip route get %[1]s' shows whether there is one",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.RouteErr == nil || p.ResolveErr != nil {
				return nil
			}
			return Values{p.Peer, p.RouteErr}
		}),
	},
	{
		ID: "path-no-device", Severity: Error,
		Text:   "no device can carry SMC to %[1]s",
		Remedy: "SMC requires an RDMA or ISM device for interface %[2]s: see the warnings, and 'smc_rnics'",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			if p.ResolveErr != nil || p.RouteErr != nil || !s.Sockets.Available() || len(s.Choices()) > 0 {
				return nil
			}
			return Values{p, p.Interface}
		}),
	},
	{
		ID: "path-neighbour", Severity: Warning,
		Text:   "the next hop to %[1]s does not answer (neighbour %[2]s)",
		Remedy: "check that it is up, and check the cable, the switch and the VLAN",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.Neighbour != "failed" && p.Neighbour != "incomplete" {
				return nil
			}
			return Values{p, p.Neighbour}
		}),
	},
	{
		ID: "path-routed", Severity: Info,
		Text:   "%[1]s is behind router %[2]s: SMC version 1, which requires one IP subnet, is not possible",
		Remedy: "use version 2, which requires RoCEv2 and an enterprise ID that both hosts have",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if !p.Gateway.IsValid() {
				return nil
			}
			return Values{p.Peer, p.Gateway}
		}),
	},
	{
		ID: "path-ipv6", Severity: Info,
		Text:   "%[1]s is an IPv6 address: SMC-R version 2 requires IPv4",
		Remedy: "connect to an IPv4 address, or use SMC-D or RDMA devices that have RoCEv1 GIDs",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if !isIPv6(p.Peer) || p.Local {
				return nil
			}
			return Values{p.Peer}
		}),
	},
	{
		ID: "path-mtu", Severity: Warning,
		Text:   "the route to %[1]s has an MTU of %[2]d, and interface %[3]s has one of %[4]d: RDMA packets may be too large for the path",
		Remedy: "ip link set %[3]s mtu %[2]d, or let the network carry packets of %[4]d bytes",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			i := s.Interface(p.Interface)
			if i == nil || p.MTU == 0 || p.MTU >= i.MTU {
				return nil
			}
			return Values{p.Peer, p.MTU, i.Name, i.MTU}
		}),
	},
	{
		ID: "path-vlan", Severity: Warning,
		Text:   "interface %[1]s is in VLAN %[2]d, and no RDMA port has a GID in that VLAN",
		Remedy: "give the VLAN interface an IP address; some adapters need the VLAN in their own configuration",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			_, vlan := s.base(p.Interface)
			has := func(g GID) bool { _, v := s.base(g.NetDev); return v == vlan }
			if vlan == 0 || slices.ContainsFunc(s.Ports, func(p Port) bool { return slices.ContainsFunc(p.GIDs, has) }) {
				return nil
			}
			return Values{p.Interface, vlan}
		}),
	},
	{
		ID: "path-virtual", Severity: Warning,
		Text:   "connections to %[1]s leave by interface %[2]s of type %[3]s, and no RDMA device belongs to it",
		Remedy: "give the interface the PNET ID of a device on the same physical network: smc_pnet add ID eth %[2]s",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			i := s.Interface(p.Interface)
			if i == nil || !slices.Contains(virtual, i.Kind) || s.pnetID(i.Name) != "" || len(s.Choices()) > 0 {
				return nil
			}
			return Values{p.Peer, i.Name, i.Kind}
		}),
	},
}

// virtual lists the kinds of interfaces without a device of their own, and without a lower one that the module finds.
var virtual = []string{"bridge", "tun", "wireguard", "vxlan", "geneve", "gre", "gretap", "ipip", "sit", "dummy", "veth"}

// onPath makes a condition about the path. find returns nil if it is not met.
func onPath(find func(s *Snapshot, p *Path) Values) func(*Snapshot) []Values {
	return func(s *Snapshot) []Values {
		if s.Path == nil {
			return nil
		}
		if v := find(s, s.Path); v != nil {
			return []Values{v}
		}
		return nil
	}
}

// liveConditions are about a test connection, if there was one.
var liveConditions = []Condition{
	failed("live-refused", FailRefused, "nothing listens at %[1]s",
		"start 'smc_chk --server' on the peer; a firewall that rejects the connection has the same effect"),
	failed("live-unreachable", FailUnreachable, "%[1]s cannot be reached: %[2]v",
		"check the route, the interface and the address; a packet filter may reject the connection"),
	{
		ID: "live-timeout", Severity: Error,
		Text:   "%[1]s does not answer, not even over TCP",
		Remedy: "check that the host is up, and that no packet filter drops the port",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailTimeout {
				return nil
			}
			return Values{l.Target}
		}),
	},
	failed("live-handshake", FailHandshake, "TCP connects to %[1]s, and the SMC handshake fails: %[2]v",
		"look at the peer's kernel log and 'smcr -d stats' on both hosts; a peer that crashed, or that does not support SMC, can be the cause"),
	failed("live-broken", FailBroken, "the connection to %[1]s broke: %[2]v",
		"look at 'dmesg' and 'smcr link' on both hosts; TCP breaks if only the peer uses SMC because option 254 was lost on the way back"),
	failed("live-corrupt", FailCorrupt, "%[1]s did not return the data that was sent: %[2]v",
		"if the peer runs 'smc_chk --server', report it with the archives of 'smc_dbg' of both hosts; other programs may answer with other data"),
	{
		ID: "live-silent", Severity: Error,
		Text:   "%[1]s accepted the connection (%[2]s), and sends nothing back",
		Remedy: "run 'smc_chk --server' on the peer; if it runs, data is lost on the way: check MTU, VLAN, flow control and UDP port 4791",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailSilent {
				return nil
			}
			return Values{l.Target, cmp.Or(l.Transport.Mode, "unknown transport")}
		}),
	},
	{
		ID: "live-stranger", Severity: Warning,
		Text:   "the program at %[1]s is not 'smc_chk --server' (%[2]v): nothing was measured",
		Remedy: "for measurements, run 'smc_chk --server' on the peer",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailStranger {
				return nil
			}
			return Values{l.Target, l.Err}
		}),
	},
	{
		ID: "live-mode-unknown", Severity: Error,
		Text:   "the transport of the connection is not known: %[1]v",
		Remedy: "load the module smc_diag, then try again",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.TransportErr == nil {
				return nil
			}
			return Values{l.TransportErr}
		}),
	},
	{
		ID: "live-peer-without-smc", Severity: Error,
		Text:   "the peer has no AF_SMC, so its server listens on TCP",
		Remedy: "run smc_chk on the peer: it reports what is missing",
		Find:   onLive(func(_ *Snapshot, l *Live) Values { return some(l.Peer != nil && !l.Peer.AFSMC) }),
	},
	{
		ID: "live-option-lost", Severity: Error,
		Text:   "the peer listens on AF_SMC, and TCP option 254, which announces SMC, was lost on the way %[1]s",
		Remedy: "find the packet filter, firewall or proxy that removes the option; SYN cookies and limits of the peer do it too: run 'smc_chk' there",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if !optionLost(l) {
				return nil
			}
			return Values{lostDirection(l)}
		}),
	},
	{
		ID: "live-no-option", Severity: Error,
		Text:   "the program that listens at %[1]s did not announce SMC",
		Remedy: "run the peer's program with AF_SMC (smc_run), and make sure that nothing on the way removes TCP option 254",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Peer != nil || reason(l) != netlinksmc.ReasonPeerNoSMC {
				return nil
			}
			return Values{l.Target}
		}),
	},
	{
		ID: "live-declined-here", Severity: Error,
		Text:   "this host fell back to TCP: %[1]s",
		Remedy: "%[2]s",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			r := reason(l)
			if r == 0 || r == netlinksmc.ReasonPeerNoSMC || r == netlinksmc.ReasonPeerDeclined {
				return nil
			}
			return Values{Words(r), remedyOf(r)}
		}),
	},
	{
		ID: "live-declined-there", Severity: Error,
		Text:   "the peer fell back to TCP: %[1]s",
		Remedy: "on the peer: %[2]s",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if r := peerReason(l); r != 0 {
				return Values{Words(r), remedyOf(r)}
			}
			return nil
		}),
	},
	{
		ID: "live-tcp", Severity: Error,
		Text:   "the connection fell back to TCP, and neither end reports a reason",
		Remedy: "run 'smcss --mode tcp --explain' on both hosts while a connection is open",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			without := l.Peer != nil && !l.Peer.AFSMC
			return some(l.Transport.Mode == "TCP" && !without && (reason(l) == 0 || reason(l) == netlinksmc.ReasonPeerDeclined) && peerReason(l) == 0)
		}),
	},
}

// failed makes a condition that is met by one kind of Failure.
func failed(id string, f Failure, text, remedy string) Condition {
	return Condition{
		ID: id, Severity: Error, Text: text, Remedy: remedy,
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != f {
				return nil
			}
			return Values{l.Target, l.Err}
		}),
	}
}

func some(met bool) Values {
	if met {
		return Values{}
	}
	return nil
}

// onLive makes a condition about the live test. find returns nil if it is not met.
func onLive(find func(s *Snapshot, l *Live) Values) func(*Snapshot) []Values {
	return func(s *Snapshot) []Values {
		if s.Live == nil {
			return nil
		}
		if v := find(s, s.Live); v != nil {
			return []Values{v}
		}
		return nil
	}
}

// reason returns why this host's end uses TCP, 0 if it does not, or if the reason is unknown.
func reason(l *Live) netlinksmc.Reason {
	if l.Transport.Fallback == nil {
		return 0
	}
	return l.Transport.Fallback.Reason
}

// peerReason returns why the peer has declined SMC, 0 if it has not, or if the reason is unknown.
func peerReason(l *Live) netlinksmc.Reason {
	if f := l.Transport.Fallback; f != nil && f.PeerDiagnosis != 0 {
		return f.PeerDiagnosis
	}
	if l.Peer == nil || l.Peer.Transport.Fallback == nil {
		return 0
	}
	if r := l.Peer.Transport.Fallback.Reason; r != netlinksmc.ReasonPeerDeclined && r != netlinksmc.ReasonPeerNoSMC {
		return r
	}
	return 0
}

// optionLost reports whether the SMC option got lost although both ends use AF_SMC.
func optionLost(l *Live) bool {
	return l.Peer != nil && l.Peer.AFSMC && (reason(l) == netlinksmc.ReasonPeerNoSMC || peerMissedOption(l.Peer))
}

func peerMissedOption(h *Hello) bool {
	return h.Transport.Fallback != nil && h.Transport.Fallback.Reason == netlinksmc.ReasonPeerNoSMC
}

// lostDirection returns the direction in which the option got lost.
func lostDirection(l *Live) string {
	if peerMissedOption(l.Peer) {
		return "to the peer"
	}
	return "back"
}

func remedyOf(r netlinksmc.Reason) string {
	return cmp.Or(r.Remedy(), "see the documentation of the peer's system")
}
