// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
)

type link struct {
	ID                   int
	State, Netdev, IBDev string
	IBPort               int
	GID                  string
	PeerGID              string `json:"peer_gid"`
	UID                  string
	PeerUID              string `json:"peer_uid"`
	Connections          int
	Ifindex              int
}

type group struct {
	Role, Type  string
	VLAN        int
	PNETID      string `json:"pnet_id"`
	Connections int
	Version     int
	Peer        struct{ Host, OS, EID string }
	Direct      bool
	MaxConns    int    `json:"max_connections"`
	MaxLinks    int    `json:"max_links"`
	BufferType  string `json:"buffer_type"`
	Sndbuf      int    `json:"sndbuf_bytes"`
	RMB         int    `json:"rmb_bytes"`
	Links       []link
}

type device struct {
	IBDev    string
	Critical bool
	Ports    []struct {
		Number int
		State  string
		Netdev string
		Links  int
		PNETID string `json:"pnet_id"`
		ByUser bool   `json:"pnet_id_by_user"`
	}
}

type socket struct {
	State, Mode string
	Link        struct {
		Role    string
		LinkID  int `json:"link_id"`
		IBDev   string
		IBPort  int
		GID     string
		PeerGID string `json:"peer_gid"`
	}
	Connection struct {
		Sndbuf     int `json:"sndbuf_bytes"`
		Rcvbuf     int `json:"rcvbuf_bytes"`
		PeerRcvbuf int `json:"peer_rcvbuf_bytes"`
	}
}

// runJSON runs a command that prints JSON on a host.
func runJSON(t *testing.T, lt *lab.Test, host, command string, to any) {
	t.Helper()
	out := lt.Must(host, command)
	if err := json.Unmarshal([]byte(out), to); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// theGroup returns the one group that has connections.
func theGroup(t *testing.T, lt *lab.Test, host string) group {
	t.Helper()
	var answer struct{ Linkgroups []group }
	runJSON(t, lt, host, "smcr linkgroup link-show --json", &answer)
	var used []group
	for _, g := range answer.Linkgroups {
		if g.Connections > 0 {
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
	for _, p := range streams(t, lt, address, n) {
		defer lab.Kill(t, p)
	}
	await(t, lt, "b", address, n)
	a, b := theGroup(t, lt, "a"), theGroup(t, lt, "b")
	if a.Role != "CLNT" || b.Role != "SERV" || a.Connections != n || b.Connections != n || a.Links[0].Connections != n {
		t.Errorf("client %+v, server %+v", a, b)
	}
	// One side's values for itself are the other side's values for its peer.
	mirrored := func(l link) link {
		l.GID, l.PeerGID, l.UID, l.PeerUID = l.PeerGID, l.GID, l.PeerUID, l.UID
		return l
	}
	if diff := cmp.Diff(a.Links[0], mirrored(b.Links[0])); diff != "" {
		t.Errorf("links, client less server:\n%s", diff)
	}
	for i, g := range []group{a, b} {
		host := lt.Hosts[i].Name
		ours(t, host, g, lt.Hosts[1-i].Name)
		sockets(t, lt, host, g, n, modules[i])
		devices(t, lt, host)
	}
}

// ours checks the parts of a group that are the same on both sides.
func ours(t *testing.T, host string, g group, peer string) {
	t.Helper()
	l := g.Links[0]
	if g.Type != "SINGLE" || g.VLAN != 0 || strings.TrimSpace(g.PNETID) != "LAB0" || g.Peer.Host != peer || g.Peer.EID != lab.UEID ||
		!g.Direct || g.MaxConns == 0 || g.MaxLinks == 0 || g.Sndbuf < 3*16384 || g.RMB < 3*16384 {
		t.Errorf("host %s: group %+v", host, g)
	}
	if l.State != "LINK_ACTIVE" || l.IBDev != "rxe0" || l.IBPort != 1 || l.Netdev != "eth0" || l.UID == "00000000" || l.PeerUID == "00000000" {
		t.Errorf("host %s: link %+v", host, l)
	}
}

// sockets checks that smcss -R shows the same link.
func sockets(t *testing.T, lt *lab.Test, host string, g group, n int, module lab.Module) {
	t.Helper()
	var answer struct{ Sockets []socket }
	runJSON(t, lt, host, "smcss -d --state active --json", &answer)
	found := 0
	for _, s := range answer.Sockets {
		if s.Mode != "SMCR" {
			continue
		}
		found++
		l := g.Links[0]
		// Here, the stock module shows its own number of the link, not the one that it has sent to the peer.
		if s.Link.GID != l.GID || s.Link.PeerGID != l.PeerGID || s.Link.IBDev != l.IBDev || s.Link.IBPort != l.IBPort || s.Link.Role != g.Role {
			t.Errorf("host %s: socket %+v, link %+v", host, s, l)
		}
		if module == lab.ModuleOurs && (s.Link.LinkID != l.ID || s.Connection.Sndbuf < 16384 || s.Connection.Rcvbuf < 16384 || s.Connection.PeerRcvbuf < 16384) {
			t.Errorf("host %s: socket %+v, link %+v", host, s, l)
		}
	}
	if found != n {
		t.Errorf("host %s: %d connections are SMC-R, want %d", host, found, n)
	}
}

func devices(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	var answer struct{ Devices []device }
	runJSON(t, lt, host, "smcr device --json", &answer)
	if len(answer.Devices) != 1 || len(answer.Devices[0].Ports) == 0 {
		t.Fatalf("host %s: %+v", host, answer)
	}
	d := answer.Devices[0]
	p := d.Ports[0]
	if d.IBDev != "rxe0" || !d.Critical || p.Number != 1 || p.State != "ACTIVE" || p.Netdev != "eth0" || p.Links == 0 ||
		strings.TrimSpace(p.PNETID) != "LAB0" || !p.ByUser {
		t.Errorf("host %s: device %+v", host, d)
	}
}
