// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// TestChoices checks which devices connections can use by the rules of the module.
func TestChoices(t *testing.T) {
	const all = "D2 loopback-ism, R1 mlx5_0 eth0, R2 mlx5_0 eth0"
	vlan := func(s *Snapshot) {
		s.Interfaces = append(s.Interfaces, Interface{
			Name: "eth0.7", Kind: "vlan", Below: "eth0", VLAN: 7, Up: true, Addresses: prefixes("10.7.0.1/24"),
		})
	}
	tests := []struct {
		name   string
		change func(*Snapshot)
		want   string
	}{
		{"a healthy host", func(*Snapshot) {}, all},
		{"no module", gone, ""},
		{"to a peer in the same subnet", toPeer, "R1 mlx5_0 eth0, R2 mlx5_0 eth0"},
		{"to a peer behind a router", func(s *Snapshot) { toPeer(s); s.Path.Gateway = netip.MustParseAddr("10.0.0.9") }, "R2 mlx5_0 eth0"},
		{"to a peer by IPv6", func(s *Snapshot) { toPeer(s); s.Path.Source = netip.MustParseAddr("fd00::1") }, "R1 mlx5_0 eth0"},
		{"to this host", func(s *Snapshot) { toPeer(s); s.Path.Local, s.Path.Interface = true, "lo" }, "D2 loopback-ism"},
		{"to this host without loopback", func(s *Snapshot) {
			toPeer(s)
			s.Path.Local, s.Path.Interface = true, "lo"
			s.Settings["net.smc.loopback"] = 0
		}, ""},
		{"to nowhere", func(s *Snapshot) { toPeer(s); s.Path.RouteErr = netlinksmc.ErrMalformed }, ""},
		{"no enterprise ID", func(s *Snapshot) { s.Identity = Identity{Known: true} }, "D2 loopback-ism, R1 mlx5_0 eth0"},
		{"the stock module's loopback without an enterprise ID", func(s *Snapshot) {
			s.Identity, s.Module.Ours = Identity{Known: true}, false
		}, "R1 mlx5_0 eth0"},
		{"a system EID", func(s *Snapshot) { s.Identity = Identity{Known: true, SEID: &netlinksmc.SEID{Enabled: true}} }, all},
		{"RoCEv2 only", port(func(p *Port) { p.GIDs = p.GIDs[1:] }), "D2 loopback-ism, R2 mlx5_0 eth0"},
		{"RoCEv2 for version 1", func(s *Snapshot) {
			s.Ports[0].GIDs = s.Ports[0].GIDs[1:]
			s.Settings["net.smc.smcr_v1_rocev2"] = 1
		}, all},
		{"neither has a PNET ID", func(s *Snapshot) {
			s.Ports[0].PNETID, s.Interfaces[1].PNETID = ism.PNETID{}, ism.PNETID{}
		}, strings.ReplaceAll(all, "NET1", "")},
		{"another network", port(func(p *Port) { p.PNETID.ID = "NET2" }), "D2 loopback-ism"},
		{"the port of another interface on the same network", func(s *Snapshot) {
			s.Interfaces = append(s.Interfaces, Interface{
				Name: "eth1", Kind: "device", Up: true, Addresses: prefixes("10.1.0.1/24"), PNETID: ism.PNETID{ID: "NET1"},
			})
		}, all + ", R1 mlx5_0 eth1"},
		{"a VLAN without GIDs", vlan, all},
		{"a VLAN with GIDs, by the PNET ID of the interface below", func(s *Snapshot) {
			vlan(s)
			s.Ports[0].GIDs = append(s.Ports[0].GIDs, GID{Addr: netip.MustParseAddr("::ffff:10.7.0.1"), RoCEv2: true, NetDev: "eth0.7"})
		}, all + ", R2 mlx5_0 eth0.7"},
		{"iWARP", port(func(p *Port) { p.RoCE = false }), "D2 loopback-ism"},
		{"ISM hardware of version 1", func(s *Snapshot) {
			s.Ports = nil
			s.ISM = []netlinksmc.Device{{PCIID: "0000:00:00.0", CHID: 7, Ports: []netlinksmc.Port{{PNETID: "NET1"}}}}
		}, "D1 0000:00:00.0 eth0"},
		{"a fabric", func(s *Snapshot) { s.Ports = nil; withFabric(s) }, "D2 loopback-ism, D2 0000:00:05.0 eth0"},
		{"a fabric on the network of the interface", func(s *Snapshot) {
			s.Ports = nil
			withFabric(s)
			s.ISM[1].Ports = []netlinksmc.Port{{PNETID: "NET1"}}
		}, "D2 loopback-ism, D2 0000:00:05.0 eth0"},
		{"a fabric on another network", func(s *Snapshot) {
			s.Ports = nil
			withFabric(s)
			s.ISM[1].Ports = []netlinksmc.Port{{PNETID: "NET2"}}
		}, "D2 loopback-ism"},
		{"a fabric on the network of another interface", func(s *Snapshot) {
			s.Ports = nil
			withFabric(s)
			s.ISM[1].Ports = []netlinksmc.Port{{PNETID: "NET2"}}
			s.Interfaces[0].PNETID = ism.PNETID{ID: "NET2", Source: ism.SourceTable}
		}, "D2 loopback-ism, D2 0000:00:05.0 eth0"},
		{"with the stock module, a device on the network that smc_pnet has given the interface", func(s *Snapshot) {
			s.Ports, s.Module.Ours = nil, false
			withFabric(s)
			s.ISM[1].Ports = []netlinksmc.Port{{PNETID: "NET1"}}
		}, "D2 loopback-ism"},
		{"a fabric without enterprise ID", func(s *Snapshot) {
			s.Ports, s.Identity = nil, Identity{Known: true}
			withFabric(s)
		}, "D2 loopback-ism"},
		{"ISM hardware of version 2", func(s *Snapshot) {
			s.Ports, s.Control.Info.ISMv2 = nil, true
			s.ISM = []netlinksmc.Device{{PCIID: "0000:00:00.0", CHID: 7, Ports: []netlinksmc.Port{{PNETID: "NET1"}}}}
		}, "D1 0000:00:00.0 eth0, D2 0000:00:00.0 eth0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := healthy()
			tt.change(s)
			var got []string
			for _, c := range s.Choices() {
				got = append(got, strings.TrimSpace(fmt.Sprintf("%s%d %s %s", c.Transport[4:], c.Version, c.Device, c.NetDev)))
			}
			if diff := cmp.Diff(tt.want, strings.Join(got, ", ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
