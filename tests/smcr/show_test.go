// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcss"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

type (
	link  = smcrd.Link
	group = smcrd.LinkGroupR
)

// none is the value of a key that is left out.
var none netlinksmc.Optional[uint64]

// theGroup returns the one group that has connections.
func theGroup(t *testing.T, lt *lab.Test, host string) group {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, "smcr linkgroup link-show --json", &answer)
	var used []group
	for _, g := range answer.LinkGroups {
		if g.Conns > 0 {
			used = append(used, g)
		}
	}
	if len(used) != 1 || len(used[0].Links) != 1 {
		t.Fatalf("host %s: %+v, want one group in use, with one link", host, answer)
	}
	return used[0]
}

// dumps compares what our commands show about connections, groups, links and devices on both hosts.
func dumps(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	const n = 3
	address, sink := serve(t, lt, "sink", 5008)
	defer lab.Kill(t, sink)
	senders := streams(t, lt, address, n)
	for _, p := range senders {
		defer lab.Kill(t, p)
	}
	await(t, lt, "b", address, n)
	lab.Suspend(t, senders...)
	a, b := theGroup(t, lt, "a"), theGroup(t, lt, "b")
	if a.Role != jsondoc.RoleClient || b.Role != jsondoc.RoleServer || a.Conns != n || b.Conns != n || a.Links[0].Conns != n {
		t.Errorf("client %+v, server %+v", a, b)
	}
	// One side's values for itself are the other side's values for its peer. linkBytes compares bytes, at rest.
	a.Links[0].TxBytes, a.Links[0].RxBytes, b.Links[0].TxBytes, b.Links[0].RxBytes = none, none, none, none
	mirrored := func(l link) link {
		l.GID, l.PeerGID, l.UID, l.PeerUID = l.PeerGID, l.GID, l.PeerUID, l.UID
		return l
	}
	if diff := cmp.Diff(a.Links[0], mirrored(b.Links[0]), cmpopts.EquateComparable(none)); diff != "" {
		t.Errorf("links, client less server:\n%s", diff)
	}
	for i, g := range []group{a, b} {
		host := lt.Hosts[i].Name
		ours(t, host, g, lt.Hosts[1-i].Name)
		sockets(t, lt, host, g, n, modules[i])
		devices(t, lt, host)
	}
}

// linkBytes has connections over both links of a group move data, all of which has arrived when they end: what one host has sent by a link
// is what the other has received by it, and no other byte is counted.
func linkBytes(t *testing.T, lt *lab.Test) {
	const conns, size = 8, 200000
	address, echo := serve(t, lt, "echo", 5062)
	defer lab.Kill(t, echo)
	sinks, sink := serve(t, lt, "sink", 5063)
	defer lab.Kill(t, sink)
	defer lab.Kill(t, keepIn(t, lt, "", sinks, 1))
	awaitLinks(t, lt, true)
	before := bytesByLink(t, lt, "a")
	lt.Must("a", fmt.Sprintf("smcflow check --conns %d --size %d %s", conns, size, address))
	a, b := bytesByLink(t, lt, "a"), bytesByLink(t, lt, "b")
	var sent, received uint64
	for uid, l := range a {
		peer := b[l.peer]
		if peer.peer != uid || peer.sent != l.received || peer.received != l.sent {
			t.Errorf("link %s: a has %+v, b has %+v", uid, l, peer)
		}
		if l.sent == before[uid].sent || l.received == before[uid].received {
			t.Errorf("link %s: no data since %+v: %+v", uid, before[uid], l)
		}
		sent += l.sent - before[uid].sent
		received += l.received - before[uid].received
	}
	if len(a) != 2 || sent != conns*size || received != conns*size {
		t.Errorf("%d bytes sent, %d received, want %d each: %+v", sent, received, conns*size, a)
	}
}

// moved is what a link has moved, and the peer's UID of it.
type moved struct {
	peer           string
	sent, received uint64
}

// bytesByLink returns what the links of the one group of a host have moved, by their UIDs.
func bytesByLink(t *testing.T, lt *lab.Test, host string) map[string]moved {
	t.Helper()
	var answer smcrd.LinkGroupsR
	lt.Document(host, "smcr linkgroup link-show --json", &answer)
	if len(answer.LinkGroups) != 1 {
		t.Fatalf("host %s: %+v", host, answer)
	}
	all := map[string]moved{}
	for _, l := range answer.LinkGroups[0].Links {
		if l.TxBytes == none || l.RxBytes == none {
			t.Errorf("host %s: a link without bytes: %+v", host, l)
		}
		all[l.UID] = moved{l.PeerUID, l.TxBytes.Or(0), l.RxBytes.Or(0)}
	}
	return all
}

// ours checks the parts of a group that are the same on both sides.
func ours(t *testing.T, host string, g group, peer string) {
	t.Helper()
	l := g.Links[0]
	if g.Type != "SINGLE" || g.VLAN != 0 || strings.TrimSpace(g.PNETID) != "LAB0" || g.Peer == nil || g.Peer.Host != peer ||
		g.Peer.EID != lab.UEID || !g.Direct.Or(false) || g.MaxConns.Or(0) == 0 || g.MaxLinks.Or(0) == 0 ||
		g.SndbufBytes.Or(0) < 3*16384 || g.RMBBytes.Or(0) < 3*16384 {
		t.Errorf("host %s: group %+v", host, g)
	}
	if l.State != "LINK_ACTIVE" || l.IBDev != "rxe0" || l.IBPort != 1 || l.NetDev != "eth0" || l.UID == "00000000" || l.PeerUID == "00000000" {
		t.Errorf("host %s: link %+v", host, l)
	}
}

// sockets checks that smcss -R shows the same link.
func sockets(t *testing.T, lt *lab.Test, host string, g group, n int, module lab.Module) {
	t.Helper()
	var answer smcss.Document
	lt.Document(host, "smcss -d --state active --json", &answer)
	found := 0
	for _, s := range answer.Sockets {
		if s.Transport != "smcr" || s.Link == nil || s.Conn == nil {
			continue
		}
		found++
		l := g.Links[0]
		// Here, the stock module shows its own number of the link, not the one that it has sent to the peer.
		if s.Link.GID != l.GID || s.Link.PeerGID != l.PeerGID || s.Link.IBDevice != l.IBDev || s.Link.IBPort != l.IBPort || s.Link.Role != g.Role {
			t.Errorf("host %s: socket %+v, link %+v", host, s, l)
		}
		if module == lab.ModuleOurs && (s.Link.LinkID != l.ID || s.Conn.SndbufBytes < 16384 || s.Conn.RcvbufBytes < 16384 || s.Conn.PeerRcvbufBytes < 16384) {
			t.Errorf("host %s: socket %+v, link %+v", host, s, l)
		}
	}
	if found != n {
		t.Errorf("host %s: %d connections are SMC-R, want %d", host, found, n)
	}
}

func devices(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	var answer smcrd.Devices
	lt.Document(host, "smcr device --json", &answer)
	if len(answer.Devices) != 1 || len(answer.Devices[0].Ports) == 0 {
		t.Fatalf("host %s: %+v", host, answer)
	}
	d := answer.Devices[0]
	p := d.Ports[0]
	if d.IBDev != "rxe0" || !d.Critical || p.Number != 1 || p.State != "ACTIVE" || p.NetDev != "eth0" || p.Links == nil || *p.Links == 0 ||
		strings.TrimSpace(p.PNETID) != "LAB0" || p.Origin != jsondoc.OriginTable {
		t.Errorf("host %s: device %+v", host, d)
	}
}
