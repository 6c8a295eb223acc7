// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
)

// linkConditions are about the second link of SMC-R link groups. They are information, because one link is enough.
var linkConditions = []Condition{
	{
		ID: "second-link-off", Severity: Info,
		Text:   "link groups over port %[1]d of %[2]s could have a second link over port %[3]d of %[4]s (net.smc.smcr_max_links_per_lgr=1)",
		Remedy: "sysctl -w net.smc.smcr_max_links_per_lgr=2 on both hosts: if a link fails, its connections continue over the other one",
		Find: func(s *Snapshot) []Values {
			if s.maxLinks() != 1 || s.routed() {
				return nil
			}
			for _, p := range s.linkPorts() {
				if p.second != nil {
					return []Values{{p.first.Number, p.first.Device, p.second.Number, p.second.Device}}
				}
			}
			return nil
		},
	},
	{
		ID: "second-link-no-port", Severity: Info,
		Text:   "link groups over port %[1]d of %[2]s have one link: this host has no other usable RDMA port %[3]s",
		Remedy: "one link is enough to work; a second one requires another active port %[3]s, on both hosts",
		Find: func(s *Snapshot) []Values {
			if s.maxLinks() < 2 || s.routed() {
				return nil
			}
			var out []Values
			for _, p := range s.linkPorts() {
				network := "in the subnet of " + p.first.NetDev
				if id := p.first.PNETID.ID; id != "" {
					network = "with PNET ID " + id
				}
				if p.second == nil {
					out = append(out, Values{p.first.Number, p.first.Device, network})
				}
			}
			return out
		},
	},
	{
		ID: "second-link-routed", Severity: Info,
		Text:   "%[1]s is behind router %[2]s: link groups to it have one link",
		Remedy: "one link is enough to work; a second one requires a network without a router between the hosts",
		Find: onPath(func(s *Snapshot, p *Path) Values {
			if s.maxLinks() < 2 || !s.routed() || len(s.linkPorts()) == 0 {
				return nil
			}
			return Values{p.Peer, p.Gateway}
		}),
	},
}

// maxLinks returns how many links a link group may have, 0 if it is unknown. Link groups have the setting of the network
// namespace that owns the RDMA device. How a stock module chooses the port of a second link was not tested.
func (s *Snapshot) maxLinks() int {
	if !s.Module.Ours || !s.Namespace.Initial && !s.Namespace.RDMAExclusive {
		return 0
	}
	return s.Setting("net.smc.smcr_max_links_per_lgr", 0)
}

// routed reports whether there is a router between this host and the peer. The module makes no second link then.
func (s *Snapshot) routed() bool { return s.Path != nil && s.Path.Gateway.IsValid() }

// linkPorts are the ports for the links of a link group; second is nil if there is none.
type linkPorts struct{ first, second *Port }

// linkPorts returns the ports that connections of this host use for first links, each with one for a second link.
func (s *Snapshot) linkPorts() []linkPorts {
	var out []linkPorts
	for _, c := range s.Choices() {
		if c.Transport != "SMC-R" {
			continue
		}
		i := slices.IndexFunc(s.Ports, func(p Port) bool { return p.Device == c.Device && p.Number == c.Port })
		first := &s.Ports[i]
		second := s.secondPort(first, c)
		if i = slices.IndexFunc(out, func(p linkPorts) bool { return p.first == first }); i < 0 {
			out = append(out, linkPorts{first, second})
		} else if out[i].second == nil {
			out[i].second = second
		}
	}
	return out
}

// secondPort returns a port that can carry the second link of link groups of a choice, whose first link is over first. It is
// nil if there is none. It follows the rules by which the module chooses: another port with the same PNET ID or, if first has
// none, one with an address in the same subnet.
func (s *Snapshot) secondPort(first *Port, c Choice) *Port {
	_, vlan := s.base(c.NetDev)
	fits := func(g GID) bool {
		_, gvlan := s.base(g.NetDev)
		switch {
		case g.NetDev == "" || gvlan != vlan || first.PNETID.ID == "" && !s.sharesSubnet(first, g.NetDev):
			return false
		case c.Version == 1:
			return !g.RoCEv2 || s.v1OverV2()
		}
		return g.RoCEv2 && g.Addr.Is4In6()
	}
	for i := range s.Ports {
		p := &s.Ports[i]
		if p != first && p.RoCE && p.State == "ACTIVE" && (first.PNETID.ID == "" || p.PNETID.ID == first.PNETID.ID) &&
			slices.ContainsFunc(p.GIDs, fits) {
			return p
		}
	}
	return nil
}

// sharesSubnet reports whether an interface has an address in the subnet of a port's GIDs.
func (s *Snapshot) sharesSubnet(p *Port, netdev string) bool {
	return slices.ContainsFunc(p.GIDs, func(g GID) bool { return !g.Addr.IsLinkLocalUnicast() && s.covers(netdev, g.Addr) })
}
