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
		Says:   "no address of %[1]s is known: %[2]v",
		Remedy: "check the name and DNS, or give the address",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.ResolveErr == nil {
				return nil
			}
			return Values{p.Host, p.ResolveErr}
		}),
	},
	{
		ID: "path-no-route", Severity: Error,
		Says:   "there is no route to %[1]s: %[2]v",
		Remedy: "'ip route get %[1]s' says the same: add a route, or set an interface up",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.RouteErr == nil || p.ResolveErr != nil {
				return nil
			}
			return Values{p.Peer, p.RouteErr}
		}),
	},
	{
		ID: "path-no-device", Severity: Error,
		Says:   "no device can carry SMC to %[1]s",
		Remedy: "it takes an RDMA or ISM device on the network (PNET ID) of interface %[2]s: see the warnings, and 'smc_rnics'",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			if p.ResolveErr != nil || p.RouteErr != nil || !s.Sockets.Available() || len(s.Choices()) > 0 {
				return nil
			}
			return Values{p, p.Interface}
		}),
	},
	{
		ID: "path-neighbour", Severity: Warning,
		Says:   "the next hop to %[1]s does not answer (neighbour %[2]s)",
		Remedy: "check that it is up, and that cable, switch and VLAN lead to it",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if p.Neighbour != "failed" && p.Neighbour != "incomplete" {
				return nil
			}
			return Values{p, p.Neighbour}
		}),
	},
	{
		ID: "path-routed", Severity: Info,
		Says:   "%[1]s is behind router %[2]s: version 1, which takes one IP subnet, is not possible",
		Remedy: "use version 2: an enterprise ID that both hosts have, and RoCEv2",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if !p.Gateway.IsValid() {
				return nil
			}
			return Values{p.Peer, p.Gateway}
		}),
	},
	{
		ID: "path-ipv6", Severity: Info,
		Says:   "%[1]s is an IPv6 address: SMC-R version 2 takes IPv4",
		Remedy: "connect by an IPv4 address, or use devices that have RoCEv1 GIDs or SMC-D",
		Find: onPath(func(_ *Snapshot, p *Path) Values {
			if !isIPv6(p.Peer) || p.Local {
				return nil
			}
			return Values{p.Peer}
		}),
	},
	{
		ID: "path-mtu", Severity: Warning,
		Says:   "the route to %[1]s has an MTU of %[2]d, and interface %[3]s of %[4]d: RDMA packets may be too large for the way",
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
		Says:   "%[1]s is VLAN %[2]d, and no RDMA port has a GID of it",
		Remedy: "give the VLAN interface an IP address; some adapters take VLANs by their own configuration",
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
		Says:   "connections to %[1]s leave by %[2]s, a %[3]s, and no RDMA device belongs to that",
		Remedy: "give it the PNET ID of a device on the same network: smc_pnet add ID eth %[2]s",
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
		"start 'smc_chk --server' on the peer; a firewall that rejects looks the same"),
	failed("live-unreachable", FailUnreachable, "%[1]s cannot be reached: %[2]v",
		"check route, interface and address; a packet filter may forbid it"),
	{
		ID: "live-timeout", Severity: Error,
		Says:   "%[1]s does not answer, not even by TCP",
		Remedy: "check that the host is up, and that no packet filter drops the port",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailTimeout {
				return nil
			}
			return Values{l.Target}
		}),
	},
	failed("live-handshake", FailHandshake, "TCP reaches %[1]s, and the handshake of SMC breaks off: %[2]v",
		"look at the peer's kernel log and 'smcr -d stats' on both hosts; a peer that crashed, or is no SMC host, does this"),
	failed("live-broken", FailBroken, "the connection to %[1]s broke: %[2]v",
		"look at 'dmesg' and 'smcr link' on both hosts; TCP breaks if only the peer takes it for SMC: an option lost on the way back"),
	failed("live-corrupt", FailCorrupt, "what came back from %[1]s is not what was sent: %[2]v",
		"report it, with the archives of 'smc_dbg' of both hosts; a peer that is no smc_chk does this, too"),
	{
		ID: "live-silent", Severity: Error,
		Says:   "%[1]s has accepted the connection (%[2]s), and nothing comes back",
		Remedy: "run 'smc_chk --server' there; if it is, data does not get through: check MTU, VLAN, flow control, UDP port 4791",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailSilent {
				return nil
			}
			return Values{l.Target, cmp.Or(l.Carrier.Mode, "by an unknown transport")}
		}),
	},
	{
		ID: "live-stranger", Severity: Warning,
		Says:   "at %[1]s is something else than a server of smc_chk (%[2]v): nothing was measured",
		Remedy: "run 'smc_chk --server' there for the measurements",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.Failure != FailStranger {
				return nil
			}
			return Values{l.Target, l.Err}
		}),
	},
	{
		ID: "live-mode-unknown", Severity: Error,
		Says:   "what carried the connection could not be found out: %[1]v",
		Remedy: "load the module smc_diag, then try again",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if l.CarrierErr == nil {
				return nil
			}
			return Values{l.CarrierErr}
		}),
	},
	{
		ID: "live-peer-without-smc", Severity: Error,
		Says:   "the peer has no AF_SMC: its server listens on TCP",
		Remedy: "run smc_chk on the peer, which says what is missing there",
		Find:   onLive(func(_ *Snapshot, l *Live) Values { return some(l.Peer != nil && !l.Peer.AFSMC) }),
	},
	{
		ID: "live-option-lost", Severity: Error,
		Says:   "the peer listens on AF_SMC, and the TCP option by which both ends know of each other was lost on the way %[1]s",
		Remedy: "find what removes TCP option 254: packet filters, firewalls, proxies; or the peer's SYN cookies or limits ('smc_chk' there)",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			if !optionLost(l) {
				return nil
			}
			return Values{lostWhere(l)}
		}),
	},
	{
		ID: "live-no-option", Severity: Error,
		Says:   "what listens at %[1]s did not say that it speaks SMC",
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
		Says:   "this host keeps the connection on TCP: %[1]s",
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
		Says:   "the peer keeps the connection on TCP, and says: %[1]s",
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
		Says:   "the connection is TCP, and neither end has given a reason",
		Remedy: "run 'smcss --mode tcp --explain' on both hosts while a connection is open",
		Find: onLive(func(_ *Snapshot, l *Live) Values {
			without := l.Peer != nil && !l.Peer.AFSMC
			return some(l.Carrier.Mode == "TCP" && !without && (reason(l) == 0 || reason(l) == netlinksmc.ReasonPeerDeclined) && peerReason(l) == 0)
		}),
	},
}

// failed makes a condition that is met by one kind of Failure.
func failed(id string, f Failure, says, remedy string) Condition {
	return Condition{
		ID: id, Severity: Error, Says: says, Remedy: remedy,
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
	if l.Carrier.Fallback == nil {
		return 0
	}
	return l.Carrier.Fallback.Reason
}

// peerReason returns why the peer has declined SMC, 0 if it has not, or if the reason is unknown.
func peerReason(l *Live) netlinksmc.Reason {
	if f := l.Carrier.Fallback; f != nil && f.PeerDiagnosis != 0 {
		return f.PeerDiagnosis
	}
	if l.Peer == nil || l.Peer.Carrier.Fallback == nil {
		return 0
	}
	if r := l.Peer.Carrier.Fallback.Reason; r != netlinksmc.ReasonPeerDeclined && r != netlinksmc.ReasonPeerNoSMC {
		return r
	}
	return 0
}

// optionLost reports whether the SMC option got lost although both ends use AF_SMC.
func optionLost(l *Live) bool {
	return l.Peer != nil && l.Peer.AFSMC && (reason(l) == netlinksmc.ReasonPeerNoSMC || sawNothing(l.Peer))
}

func sawNothing(h *Hello) bool {
	return h.Carrier.Fallback != nil && h.Carrier.Fallback.Reason == netlinksmc.ReasonPeerNoSMC
}

// lostWhere returns the direction in which the option got lost.
func lostWhere(l *Live) string {
	if sawNothing(l.Peer) {
		return "there"
	}
	return "back"
}

func remedyOf(r netlinksmc.Reason) string {
	return cmp.Or(r.Remedy(), "look it up in the documentation of the peer's system")
}
