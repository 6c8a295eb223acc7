// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// kernel is the part of netlinksmc.Client that the command uses.
type kernel interface {
	LinkGroupsRWithLinks(ctx context.Context) ([]netlinksmc.LinkGroupR, error)
	LinkGroupsD(ctx context.Context) ([]netlinksmc.LinkGroupD, error)
	DevicesR(ctx context.Context) ([]netlinksmc.Device, error)
	DevicesD(ctx context.Context) ([]netlinksmc.Device, error)
	FallbackStats(ctx context.Context) (*netlinksmc.FallbackStats, error)
	Close() error
}

// thing is an object of a listing.
type thing struct {
	// about is an event with what is known about the object.
	about eventJSON
	// up is whether it works; other has what else may change.
	up    bool
	other string
}

// state has the objects of all listings by their names, and the counters of fallbacks.
type state struct {
	things    map[string]thing
	fallbacks map[fallbackKey]uint16
}

type fallbackKey struct {
	role   string
	reason netlinksmc.Reason
}

// readState lists everything. ok is false if a list changed while it was read: then it may have gaps.
func readState(ctx context.Context, k kernel, ifName func(uint32) string) (s state, ok bool, err error) {
	s = state{things: map[string]thing{}, fallbacks: map[fallbackKey]uint16{}}
	groups, err1 := k.LinkGroupsRWithLinks(ctx)
	groupsD, err2 := k.LinkGroupsD(ctx)
	devices, err3 := k.DevicesR(ctx)
	devicesD, err4 := k.DevicesD(ctx)
	stats, err5 := k.FallbackStats(ctx)
	ok = true
	for _, err := range []error{err1, err2, err3, err4, err5} {
		switch {
		case errors.Is(err, netlinksmc.ErrDumpInterrupted):
			ok = false
		case errors.Is(err, netlinksmc.ErrNotSupported):
			// An old module has no such list.
		case err != nil:
			return state{}, false, err
		}
	}
	for i := range groups {
		s.addGroupR(&groups[i], ifName)
	}
	for i := range groupsD {
		s.addGroupD(&groupsD[i])
	}
	for i := range devices {
		s.addDevice(&devices[i], smcR, devices[i].IBName, ifName)
	}
	for i := range devicesD {
		s.addDevice(&devicesD[i], smcD, devicesD[i].PCIID, ifName)
	}
	if stats != nil {
		s.addFallbacks(jsondoc.RoleServer, stats.Server)
		s.addFallbacks(jsondoc.RoleClient, stats.Client)
	}
	return s, ok, nil
}

// groupMask leaves out the byte of a group's ID that counts its links.
const groupMask = 0xffffff00

func (s *state) addGroupR(g *netlinksmc.LinkGroupR, ifName func(uint32) string) {
	id := fmt.Sprintf("%08x", g.ID&groupMask)
	s.things["0 R "+id] = thing{
		about: eventJSON{Object: objGroup, LinkGroupID: id, Transport: smcR, Role: jsondoc.Role(g.Role), Type: g.Type.String(), PNETID: g.PNETID},
		up:    true, other: g.Type.String(),
	}
	for _, l := range g.Links {
		s.things[fmt.Sprintf("1 %s %02x %08x", id, l.ID, l.UID)] = thing{
			about: eventJSON{
				Object: objLink, LinkGroupID: id, LinkID: l.ID, LinkUID: fmt.Sprintf("%08x", l.UID), Device: l.IBDev, Port: l.IBPort, GID: l.GID,
				PeerGID: l.PeerGID, Interface: ifName(l.NetIfindex),
			},
			up: l.State == netlinksmc.LinkActive,
		}
	}
}

func (s *state) addGroupD(g *netlinksmc.LinkGroupD) {
	id := fmt.Sprintf("%08x", g.ID)
	s.things["0 D "+id] = thing{
		about: eventJSON{
			Object: objGroup, LinkGroupID: id, Transport: smcD, PNETID: g.PNETID, GID: fmt.Sprintf("%016x", g.GID),
			PeerGID: fmt.Sprintf("%016x", g.PeerGID),
		},
		up: true,
	}
}

func (s *state) addDevice(d *netlinksmc.Device, transport, name string, ifName func(uint32) string) {
	s.things["2 "+transport+" "+name] = thing{about: eventJSON{Object: objDevice, Transport: transport, Device: name}, up: true}
	if transport != smcR {
		return // the module reports no state of these ports
	}
	for _, p := range d.Ports {
		s.things[fmt.Sprintf("3 %s %d", name, p.Number)] = thing{
			about: eventJSON{
				Object: objPort, Transport: transport, Device: name, Port: p.Number, PNETID: p.PNETID, Interface: ifName(p.NetIfindex),
			},
			up: p.State == netlinksmc.PortActive,
		}
	}
}

func (s *state) addFallbacks(role string, counts []netlinksmc.FallbackCount) {
	for _, c := range counts {
		s.fallbacks[fallbackKey{role, c.Reason}] = c.Count
	}
}

// changes returns the events from one state to the next, in the order of the objects. Objects that are gone come before new ones.
func (s *state) changes(next *state) []eventJSON {
	var events []eventJSON
	add := func(t thing, action string) {
		e := t.about
		e.Action = action
		events = append(events, e)
	}
	for _, name := range slices.Sorted(maps.Keys(s.things)) {
		if _, there := next.things[name]; !there {
			add(s.things[name], "delete")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(next.things)) {
		now := next.things[name]
		old, was := s.things[name]
		switch {
		case !was:
			add(now, "add")
			if now.up && (now.about.Object == objLink || now.about.Object == objPort) {
				add(now, "up")
			}
		case old.up != now.up:
			add(now, map[bool]string{true: "up", false: "down"}[now.up])
		case old.other != now.other:
			add(now, "change")
		}
	}
	return events
}

// fallbackChanges returns an event for each reason whose counter has moved. The counters have 16 bits.
func (s *state) fallbackChanges(next *state) []eventJSON {
	keys := slices.SortedFunc(maps.Keys(next.fallbacks), func(a, b fallbackKey) int {
		return cmp.Or(cmp.Compare(a.role, b.role), cmp.Compare(a.reason, b.reason))
	})
	var events []eventJSON
	for _, key := range keys {
		if n := next.fallbacks[key] - s.fallbacks[key]; n > 0 {
			events = append(events, eventJSON{
				Object: objFallback, Action: "tcp", Role: key.role, Reason: newReason(key.reason), Connections: uint64(n),
			})
		}
	}
	return events
}
