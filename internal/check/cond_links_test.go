// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/ism"
)

// TestLinkPorts changes a host that has two ports on one network, and checks which ports link groups would have.
func TestLinkPorts(t *testing.T) {
	second := func(change func(s *Snapshot, p *Port)) func(*Snapshot) {
		return func(s *Snapshot) { change(s, &s.Ports[1]) }
	}
	noIDs := func(s *Snapshot) {
		for i := range s.Ports {
			s.Ports[i].PNETID = ism.PNETID{}
		}
		for i := range s.Interfaces {
			s.Interfaces[i].PNETID = ism.PNETID{}
		}
	}
	tests := []struct {
		name   string
		change func(*Snapshot)
		want   []string
	}{
		{"one network", func(*Snapshot) {}, []string{"mlx5_0 mlx5_1"}},
		{"a port that is down", second(func(_ *Snapshot, p *Port) { p.State = "DOWN" }), []string{"mlx5_0 -"}},
		{"a port that is not RoCE", second(func(_ *Snapshot, p *Port) { p.RoCE = false }), []string{"mlx5_0 -"}},
		{"another network", second(func(s *Snapshot, p *Port) {
			p.PNETID.ID, s.Interface("eth1").PNETID.ID = "NET2", "NET2"
		}), []string{"mlx5_0 -", "mlx5_1 -"}},
		{"a second port of the device", second(func(_ *Snapshot, p *Port) { p.Device, p.Number = "mlx5_0", 2 }), []string{"mlx5_0 mlx5_0"}},
		{"another subnet, with PNET IDs", second(func(s *Snapshot, p *Port) {
			s.Interface("eth1").Addresses = prefixes("10.1.0.3/24")
			p.GIDs[1].Addr = netip.MustParseAddr("::ffff:10.1.0.3")
		}), []string{"mlx5_0 mlx5_1", "mlx5_1 mlx5_0"}},
		{"no PNET IDs", noIDs, []string{"mlx5_0 mlx5_1", "mlx5_1 mlx5_0"}},
		{"another subnet, without PNET IDs", func(s *Snapshot) {
			noIDs(s)
			s.Interface("eth1").Addresses = prefixes("10.1.0.3/24")
			s.Ports[1].GIDs[1].Addr = netip.MustParseAddr("::ffff:10.1.0.3")
		}, []string{"mlx5_0 -", "mlx5_1 -"}},
		{"version 1 only", func(s *Snapshot) { s.Identity.UEIDs = nil }, []string{"mlx5_0 mlx5_1"}},
		{"version 1, and RoCEv2 only", func(s *Snapshot) {
			s.Identity.UEIDs, s.Ports[1].GIDs = nil, s.Ports[1].GIDs[1:]
		}, []string{"mlx5_0 -"}},
		{"version 2 only in RoCEv1", second(func(_ *Snapshot, p *Port) { p.GIDs = p.GIDs[:1] }), []string{"mlx5_0 mlx5_1"}},
		{"a VLAN", second(func(s *Snapshot, p *Port) {
			s.Interfaces = append(s.Interfaces, Interface{Name: "eth1.7", Kind: "vlan", Below: "eth1", VLAN: 7, Up: true})
			for i := range p.GIDs {
				p.GIDs[i].NetDev = "eth1.7"
			}
		}), []string{"mlx5_0 -"}},
		{"no RDMA", func(s *Snapshot) { s.Module.SMCR = new(false) }, nil},
	}
	for _, tt := range tests {
		s := healthy()
		secondPort(s)
		tt.change(s)
		var got []string
		for _, p := range s.linkPorts() {
			device := "-"
			if p.second != nil {
				device = p.second.Device
			}
			got = append(got, p.first.Device+" "+device)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got): %s", tt.name, diff)
		}
	}
}

// TestSecondLinkUnknown checks that nothing is said of second links where the setting is not that of link groups.
func TestSecondLinkUnknown(t *testing.T) {
	for name, change := range map[string]func(*Snapshot){
		"a kernel without the setting": func(s *Snapshot) { delete(s.Settings, "net.smc.smcr_max_links_per_lgr") },
		"a stock module":               func(s *Snapshot) { s.Module.Ours = false },
		"another network namespace":    func(s *Snapshot) { s.Namespace.Initial = false },
		"a second link":                setting("net.smc.smcr_max_links_per_lgr", 2),
	} {
		s := healthy()
		secondPort(s)
		change(s)
		for _, f := range s.Findings() {
			if slices.ContainsFunc(linkConditions, func(c Condition) bool { return c.ID == f.ID }) {
				t.Errorf("%s: %+v", name, f)
			}
		}
	}
}
