// SPDX-License-Identifier: Apache-2.0

package check

import (
	"net/netip"
	"slices"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// chidLoopback is the CHID of the loopback device, the SMC-D device that uses the memory of this host.
const chidLoopback = 0xffff

// Choice is a transport, a version and a device that a connection can use.
type Choice struct {
	// Transport is "SMC-R" or "SMC-D", Version the major version.
	Transport string
	Version   int
	// Device and Port move the data. Port is 0 for SMC-D.
	Device string
	Port   uint8
	// NetDev is the interface of the TCP connection, empty for connections within this host.
	NetDev string
	PNETID string
}

// Local reports whether the choice is for connections within this host only.
func (c Choice) Local() bool { return c.NetDev == "" }

// Choices returns the choices for connections of this host: for those to the peer if there is a path to one, or else for all.
// It follows the rules by which the module chooses. It cannot know whether the peer has a matching device.
func (s *Snapshot) Choices() []Choice {
	if !s.Sockets.Available() {
		return nil
	}
	if s.Path != nil {
		return s.choicesOnPath(s.Path)
	}
	out := s.choicesWithin()
	for _, i := range s.Interfaces {
		if i.Loopback || !i.Up {
			continue
		}
		for _, a := range i.Addresses {
			for _, c := range s.choicesBy(i.Name, a.Addr(), true) {
				if !slices.Contains(out, c) {
					out = append(out, c)
				}
			}
		}
	}
	return out
}

func (s *Snapshot) choicesOnPath(p *Path) []Choice {
	if p.ResolveErr != nil || p.RouteErr != nil {
		return nil
	}
	var out []Choice
	if p.Local {
		out = s.choicesWithin()
	}
	return append(out, s.choicesBy(p.Interface, p.Source, !p.Gateway.IsValid())...)
}

// choicesWithin returns the choices for connections within this host.
func (s *Snapshot) choicesWithin() []Choice {
	if !enabled(s.Module.SMCD) || s.Setting("net.smc.loopback", 1) == 0 {
		return nil
	}
	for _, d := range s.ISM {
		// The stock module requires an EID for this device, as for any other of version 2.
		if d.CHID == chidLoopback && (s.Module.Ours || s.Identity.HasEID()) {
			return []Choice{{Transport: "SMC-D", Version: 2, Device: d.PCIID}}
		}
	}
	return nil
}

// choicesBy returns the choices for connections that leave by an interface with that source address. Version 1 requires a peer
// in the same subnet.
func (s *Snapshot) choicesBy(name string, source netip.Addr, sameSubnet bool) []Choice {
	i := s.Interface(name)
	if i == nil || i.Loopback {
		return nil
	}
	id := s.pnetID(name)
	var out []Choice
	if enabled(s.Module.SMCD) {
		out = s.choicesISM(name, id, sameSubnet)
	}
	if !enabled(s.Module.SMCR) {
		return out
	}
	for version := 1; version <= 2; version++ {
		switch {
		case version == 1 && !sameSubnet:
			continue
		case version == 2 && (!s.Identity.HasEID() || !source.Unmap().Is4()):
			continue
		}
		for _, p := range s.Ports {
			if s.fits(&p, name, id, source, version) {
				out = append(out, Choice{
					Transport: "SMC-R", Version: version, Device: p.Device, Port: p.Number, NetDev: name, PNETID: id,
				})
				break
			}
		}
	}
	return out
}

func (s *Snapshot) choicesISM(name, id string, sameSubnet bool) []Choice {
	var out []Choice
	for _, d := range s.ISM {
		if d.CHID == chidLoopback {
			continue
		}
		c := Choice{Transport: "SMC-D", Device: d.PCIID, NetDev: name, PNETID: id}
		if sameSubnet && id != "" && pnetOfISM(&d) == id && !isFabric(&d) {
			c.Version = 1
			out = append(out, c)
		}
		v2 := s.Control.Info != nil && s.Control.Info.ISMv2 && s.Identity.HasEID()
		if v2 && s.offers(&d) {
			c.Version = 2
			out = append(out, c)
		}
	}
	return out
}

// offers reports whether a client offers an ISM device for version 2: one without PNET ID, or with that of an interface,
// through which the connection need not leave. The stock module does not count PNET IDs that smc_pnet has given to interfaces.
func (s *Snapshot) offers(d *netlinksmc.Device) bool {
	id := pnetOfISM(d)
	return id == "" || slices.ContainsFunc(s.Interfaces, func(i Interface) bool {
		return i.PNETID.ID == id && (s.Module.Ours || i.PNETID.Source == ism.SourceHardware)
	})
}

func pnetOfISM(d *netlinksmc.Device) string {
	if len(d.Ports) == 0 {
		return ""
	}
	return d.Ports[0].PNETID
}

// fits reports whether a port can carry a connection that leaves by an interface.
func (s *Snapshot) fits(p *Port, name, id string, source netip.Addr, version int) bool {
	if !p.RoCE || p.State != "ACTIVE" || id != "" && p.PNETID.ID != id {
		return false
	}
	base, vlan := s.base(name)
	return slices.ContainsFunc(p.GIDs, func(g GID) bool {
		gbase, gvlan := s.base(g.NetDev)
		if g.NetDev == "" || gvlan != vlan || id == "" && gbase != base {
			return false
		}
		if version == 1 {
			return !g.RoCEv2 || s.v1OverV2() && g.Addr.Is4In6() == source.Unmap().Is4()
		}
		return g.RoCEv2 && g.Addr.Is4In6() && s.covers(g.NetDev, source)
	})
}

// v1OverV2 reports whether version 1 may use GIDs of RoCEv2.
func (s *Snapshot) v1OverV2() bool { return s.Setting("net.smc.smcr_v1_rocev2", 0) != 0 }

// covers reports whether an address is in a subnet of an interface.
func (s *Snapshot) covers(name string, addr netip.Addr) bool {
	i := s.Interface(name)
	return i != nil && slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Contains(addr.Unmap()) })
}

// remote reports whether any choice is for peers on other hosts.
func remote(choices []Choice) bool {
	return slices.ContainsFunc(choices, func(c Choice) bool { return !c.Local() })
}

// adapters returns the devices of a kind.
func (s *Snapshot) adapters(kind ism.Kind) []ism.Device {
	var out []ism.Device
	for _, d := range s.Adapters {
		if d.Kind == kind {
			out = append(out, d)
		}
	}
	return out
}
