// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/internal/tool/smcss"
	"golang.org/x/sys/unix"
)

const (
	statesPort = 5009
	// dmb is the size of a receive buffer, net.smc.rmem times four; ring is its size without the cursors.
	dmb  = 4 * 65536
	ring = dmb - 32
)

// act is a connection of 'smcflow states'.
type act struct {
	name           string
	port           int
	sent, received uint64
}

// position is where in the stream a cursor stands.
func position(c smcss.Cursor) uint64 { return uint64(c.Wrap)*ring + uint64(c.Count) }

// document runs a command with --json.
func document[T any](t *testing.T, lt *lab.Test, args string) T {
	t.Helper()
	var doc T
	lt.Document("a", args+" --json", &doc)
	return doc
}

// sockets returns the SMC-D connections by their own port and their peer's.
func sockets(t *testing.T, lt *lab.Test) map[[2]int]smcss.Socket {
	t.Helper()
	list := map[[2]int]smcss.Socket{}
	for _, s := range document[smcss.Document](t, lt, "smcss -D -d -i").Sockets {
		if s.Local != nil && s.Peer != nil && s.Conn != nil && s.DMB != nil {
			list[[2]int{int(s.Local.Port), int(s.Peer.Port)}] = s
		}
	}
	return list
}

// smcdViews compares the output of the tools for connections over SMC-D with the actions of a program, and both ends of each
// connection with each other.
func smcdViews(t *testing.T, lt *lab.Test) {
	// An end that waits for its peer to close must not time out before everything is checked, however slow the machine is.
	lt.Must("a", "ip link set lo up; sysctl -qw net.ipv4.tcp_fin_timeout=600")
	before := document[smcrd.Stats](t, lt, "smcd -a stats")
	lt.Must("a", fmt.Sprintf("smcflow states 127.0.0.1:%d >/run/states 2>&1 & echo $! >/run/states.pid", statesPort))
	if err := lt.Host("a").WaitFor(t.Context(), "grep -q ready /run/states"); err != nil {
		t.Fatalf("%v: %s", err, lt.Must("a", "cat /run/states"))
	}
	acts := parseActs(t, lt.Must("a", "cat /run/states"))
	// The server's end of a connection that was not accepted may appear a moment later.
	if err := lt.Host("a").WaitFor(t.Context(), fmt.Sprintf("test $(smcss -D | grep -c SMCD.*[0-9a-f]) = %d", 2*len(acts))); err != nil {
		t.Fatalf("%v: %s", err, lt.Must("a", "smcss -aD"))
	}
	t.Run("sockets", func(t *testing.T) { statesSockets(t, acts, sockets(t, lt)) })
	t.Run("group", func(t *testing.T) { statesGroup(t, lt, 2*len(acts)) })
	t.Run("stats", func(t *testing.T) { statesStats(t, before, document[smcrd.Stats](t, lt, "smcd -a stats"), acts) })
	t.Run("text", func(t *testing.T) { statesText(t, lt) })

	lt.Must("a", "kill $(cat /run/states.pid)")
	if err := lt.Host("a").WaitFor(t.Context(), "! smcss -D | grep -q SMCD.*[0-9a-f]"); err != nil {
		t.Errorf("%v: %s", err, lt.Must("a", "smcss -aD"))
	}
	groups := document[smcrd.LinkGroupsD](t, lt, "smcd linkgroup").LinkGroups
	if len(groups) != 1 || groups[0].Conns != 0 || groups[0].DMBBytes.Or(0) != 0 {
		t.Errorf("after the end: %+v", groups)
	}
	if after := document[smcrd.Stats](t, lt, "smcd -a stats"); after.RX.BufferUsage.Or(0) != 0 || after.TX.BufferUsage.Or(0) != 0 {
		t.Errorf("buffers in use after the end: %+v", after)
	}
}

func parseActs(t *testing.T, text string) []act {
	t.Helper()
	var acts []act
	for line := range strings.Lines(text) {
		var a act
		if n, _ := fmt.Sscan(line, &a.name, &a.port, &a.sent, &a.received); n == 4 {
			acts = append(acts, a)
		}
	}
	if len(acts) < 6 {
		t.Fatalf("the listing of states is:\n%s", text)
	}
	return acts
}

// ends is the expected state of each side after an act: the client's, then the server's.
var ends = map[string][2]struct {
	state    string
	shutdown string
	orphan   bool
	said     uint8 // the closing flags that it has sent, as in a CDC message
}{
	"idle":    {{"ACTIVE", "", false, 0}, {"ACTIVE", "", false, 0}},
	"busy":    {{"ACTIVE", "", false, 0}, {"ACTIVE", "", false, 0}},
	"half":    {{"PEERCLOSEWAIT1", "send", false, 0x80}, {"APPCLOSEWAIT1", "receive", false, 0}},
	"closing": {{"PEERCLOSEWAIT1", "both", true, 0x40}, {"APPCLOSEWAIT1", "receive", false, 0}},
	"waiting": {{"ACTIVE", "", false, 0}, {"ACTIVE", "", true, 0}},
}

func statesSockets(t *testing.T, acts []act, list map[[2]int]smcss.Socket) {
	tokens := map[string]bool{}
	for _, a := range acts {
		client, server := list[[2]int{a.port, statesPort}], list[[2]int{statesPort, a.port}]
		if client.Conn == nil || server.Conn == nil {
			t.Errorf("%s: an end is not listed", a.name)
			continue
		}
		for i, s := range []smcss.Socket{client, server} {
			want := ends[a.name][i]
			shutdown := map[[2]bool]string{{true, false}: "receive", {false, true}: "send", {true, true}: "both"}[[2]bool{s.Shutdown.Receive, s.Shutdown.Send}]
			if s.State != want.state || s.Transport != "smcd" || (s.Inode == 0) != want.orphan || shutdown != want.shutdown ||
				s.Conn.TxConnFlags != want.said || s.Conn.RxConnFlags != ends[a.name][1-i].said {
				t.Errorf("%s, end %d: %+v", a.name, i, s)
			}
			if tokens[s.Conn.Token] || tokens[s.DMB.Token] {
				t.Errorf("%s, end %d: a token of another connection: %+v", a.name, i, s)
			}
			tokens[s.Conn.Token], tokens[s.DMB.Token] = true, true
		}
		mirrored(t, a.name, client, server)
		mirrored(t, a.name, server, client)
		flowed(t, a, client, server)
		progressed(t, a, client, server)
	}
}

// mirrored checks that each end shows the state that the other end reports of itself.
func mirrored(t *testing.T, name string, s, peer smcss.Socket) {
	c, p, d := s.Conn, peer.Conn, s.DMB
	if d.PeerToken != peer.DMB.Token || d.PeerGID != peer.DMB.GID || d.PeerExtGID != peer.DMB.ExtGID || d.LinkGroupID != peer.DMB.LinkGroupID {
		t.Errorf("%s: DMBs do not match: %+v and %+v", name, d, peer.DMB)
	}
	if c.RcvbufBytes != ring || c.PeerRcvbufBytes != p.RcvbufBytes || c.SndbufBytes != p.RcvbufBytes {
		t.Errorf("%s: buffers do not match: %+v and %+v", name, c, p)
	}
	if c.RxProd != p.TxProd || c.RxCons != p.TxCons || c.TxFin != c.RxCons || c.TxSent != c.TxProd || c.TxPrep != c.TxProd {
		t.Errorf("%s: cursors do not match: %+v and %+v", name, c, p)
	}
}

// flowed checks that cursors match the data that the application has sent and received.
func flowed(t *testing.T, a act, client, server smcss.Socket) {
	for _, c := range []struct {
		what      string
		got, want uint64
	}{
		{"sent", position(client.Conn.TxProd), a.sent},
		{"arrived", position(server.Conn.RxProd), a.sent},
		{"read", position(server.Conn.TxCons), a.received},
		{"confirmed", position(client.Conn.TxFin), a.received},
		{"sent back", position(server.Conn.TxProd), 0},
		{"read back", position(client.Conn.TxCons), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s up to %d, want %d", a.name, c.what, c.got, c.want)
		}
	}
}

// progressed checks that the counters of -i match the same data.
func progressed(t *testing.T, a act, client, server smcss.Socket) {
	for i, end := range []struct {
		s                           smcss.Socket
		sent, acked, received, read uint64
	}{{client, a.sent, a.received, 0, 0}, {server, 0, 0, a.sent, a.received}} {
		got := end.s.Info
		if got == nil {
			t.Errorf("%s, end %d: no facts", a.name, i)
			continue
		}
		const none = 1 << 63
		counted := []uint64{got.BytesSent.Or(none), got.BytesAcked.Or(none), got.BytesReceived.Or(none), got.BytesRead.Or(none), got.Failovers.Or(none)}
		if diff := cmp.Diff([]uint64{end.sent, end.acked, end.received, end.read, 0}, counted); diff != "" {
			t.Errorf("%s, end %d: %s", a.name, i, diff)
		}
		// The program has made all connections before it said so; the guest has been up for less than a day.
		if age := got.AgeSeconds.Or(0); age <= 0 || age > 86400 {
			t.Errorf("%s, end %d: an age of %v s", a.name, i, age)
		}
		// An end that is closed may have no TCP connection any more.
		if end.s.Inode != 0 && got.TCP == nil {
			t.Errorf("%s, end %d: no facts of TCP: %+v", a.name, i, got)
		}
	}
}

// statesGroup checks the group and the device of all connections, and the fields of the sockets about them.
func statesGroup(t *testing.T, lt *lab.Test, conns int) {
	groups := document[smcrd.LinkGroupsD](t, lt, "smcd linkgroup").LinkGroups
	if len(groups) != 1 {
		t.Fatalf("link groups: %+v", groups)
	}
	g := groups[0]
	host := strings.TrimSpace(lt.Must("a", "uname -n"))
	if g.Conns != uint32(conns) || g.DMBBytes.Or(0) != uint64(conns)*dmb || g.CHID != "ffff" || g.Peer == nil || g.Peer.Host != host || g.Peer.OS != "LINUX" {
		t.Errorf("link group of %d connections: %+v", conns, g)
	}
	if g.GID != g.PeerGID || g.ExtGID != g.PeerExtGID || g.GID == strings.Repeat("0", 16) {
		t.Errorf("both ends are on one device: %+v", g)
	}
	for _, s := range sockets(t, lt) {
		if s.DMB.LinkGroupID != g.ID || s.DMB.GID != g.GID || s.DMB.ExtGID != g.ExtGID {
			t.Errorf("%+v is not of %+v", s, g)
		}
	}
	devices := document[smcrd.Devices](t, lt, "smcd device").Devices
	if len(devices) != 1 {
		t.Fatalf("devices: %+v", devices)
	}
	if d := devices[0]; d.PCIID != "loopback-ism" || d.PCHID != "ffff" || !d.Critical || d.LinkGroups == nil || *d.LinkGroups != 1 {
		t.Errorf("device: %+v", d)
	}
}

func statesStats(t *testing.T, before, after smcrd.Stats, acts []act) {
	var sent, received uint64
	for _, a := range acts {
		sent += a.sent
		received += a.received
	}
	if after.TX.Bytes-before.TX.Bytes != sent || after.RX.Bytes-before.RX.Bytes != received {
		t.Errorf("sent %d, received %d; counted from %+v to %+v", sent, received, before, after)
	}
	if after.Connections.ClientV2-before.Connections.ClientV2 != uint64(len(acts)) || after.Connections.ServerV2-before.Connections.ServerV2 != uint64(len(acts)) {
		t.Errorf("%d connections; counted from %+v to %+v", len(acts), before, after)
	}
	if after.Fallback.Client.Total != before.Fallback.Client.Total || after.Fallback.Server.Total != before.Fallback.Server.Total {
		t.Errorf("fallbacks: %+v, then %+v", before, after)
	}
	if want := uint64(2*len(acts)) * dmb; after.RX.BufferUsage.Or(0) != want {
		t.Errorf("%d bytes of buffers, want %d", after.RX.BufferUsage.Or(0), want)
	}
}

// statesText checks the listings as text.
func statesText(t *testing.T, lt *lab.Test) {
	for _, v := range []view{
		{"a", "smcss -a", `(?m)^LISTEN +00000 \d{7} 127\.0\.0\.1:5009 +$`},
		{"a", "smcss -D", `(?m)^ACTIVE +00000 \d{7} 127\.0\.0\.1:\d+ +127\.0\.0\.1:5009 +0000 SMCD [0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{16} [0-9a-f]{8} $`},
		{"a", "smcss -D", `(?m)^PEERCLOSEWAIT1 00000 0000000 127\.0\.0\.1:\d+ +127\.0\.0\.1:5009 `},
		{"a", "smcss -d", `(?m) SMCD  <-W  [0-9a-f]{8} 0003ffe0 0003ffe0 0003ffe0 `},
		{"a", "smcss -R", `^State .*\n$`},
		{"a", "smcd linkgroup", `^LG-ID    VLAN  #Conns  PNET-ID \n[0-9a-f]{8}    0      12                   \n$`},
		{"a", "smcd -d linkgroup", `(?m)^DMB      : 3145728 B$`},
		{"a", "smcd device", `^FID  Type  PCI-ID        PCHID  InUse  #LGs  PNET-ID  \n0000 0     loopback-ism  ffff   Yes       1                   \n$`},
		{"a", "smcd info", `(?m)^ISM:              v2$`},
		{"a", "smcd stats", `(?m)^  SMC connections +[1-9]`},
	} {
		r := lt.Run(v.host, strings.Fields(v.cmd)...)
		if r.Code != 0 || r.Stderr != "" || !regexp.MustCompile(v.want).MatchString(r.Stdout) {
			t.Errorf("%s: status %d, stderr %q, stdout:\n%s\nwant a match of %s", v.cmd, r.Code, r.Stderr, r.Stdout, v.want)
		}
	}
}

// loopback switches SMC-D within the host off and on, as root and as nobody.
func loopback(t *testing.T, lt *lab.Test) {
	lt.Must("a", "ip link set lo up")
	modes := map[string]string{"off": "TCP", "namespace": "SMCD", "on": "SMCD"}
	for _, word := range []string{"off", "namespace", "on"} {
		lt.Must("a", "smcd loopback "+word)
		if got := document[smcrd.Loopback](t, lt, "smcd loopback").Loopback.Scope; got != word {
			t.Errorf("%s: shown is %q", word, got)
		}
		sink, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "sink", "127.0.0.1:5010"}})
		if err != nil {
			t.Fatal(err)
		}
		source, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "source", "--wait", "--seconds", "600", "127.0.0.1:5010"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := lt.Host("a").WaitFor(t.Context(), "smcss --peer 127.0.0.1:5010 | grep -q 'ACTIVE.* "+modes[word]+" '"); err != nil {
			t.Errorf("%s: %v: %s", word, err, lt.Must("a", "smcss -a"))
		}
		_ = source.Signal(unix.SIGKILL)
		lab.Kill(t, sink)
	}
	r := lt.Run("a", "setpriv", "--reuid=65534", "--clear-groups", "smcd", "loopback", "off")
	if r.Code != 1 || r.Stdout != "" || !strings.HasPrefix(r.Stderr, "smcd: set net.smc.loopback: permission denied: run as root") {
		t.Errorf("as nobody: %+v", r)
	}
	if got := lt.Must("a", "unshare --net smcd loopback"); got != "SMC-D loopback: on\n" {
		t.Errorf("in a new namespace: %q", got)
	}
}

// deleteGroup deletes the link group of a connection that sends: both of its ends get an error, and the next connection
// forms another group. An unprivileged user is refused.
func deleteGroup(t *testing.T, lt *lab.Test) {
	lt.Must("a", "ip link set lo up")
	sink, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "sink", "127.0.0.1:5011"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, sink)
	source := []string{"smcflow", "source", "--wait", "--seconds", "600", "127.0.0.1:5011"}
	sending, err := lt.Host("a").Start(lab.Cmd{Argv: source})
	if err != nil {
		t.Fatal(err)
	}
	const active = "smcss --peer 127.0.0.1:5011 | grep -q 'ACTIVE.* SMCD '"
	if err := lt.Host("a").WaitFor(t.Context(), active); err != nil {
		t.Fatal(err)
	}
	for _, g := range document[smcrd.LinkGroupsD](t, lt, "smcd linkgroup").LinkGroups {
		r := lt.Run("a", "setpriv", "--reuid=65534", "--clear-groups", "smcd", "linkgroup", "delete", g.ID)
		if r.Code != 1 || !strings.Contains(r.Stderr, "permission denied: run as root") {
			t.Errorf("as nobody: %+v", r)
		}
		lt.Must("a", "smcd linkgroup delete "+g.ID)
		if r := lt.Run("a", "smcd", "linkgroup", "delete", g.ID); r.Code != 1 || !strings.Contains(r.Stderr, "link group not found") {
			t.Errorf("a group that is gone: %+v", r)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(30*time.Second))
	defer cancel()
	if r, err := sending.Wait(ctx); err != nil || r.Code == 0 {
		t.Errorf("a program whose connection has ended: %v, %+v", err, r)
	}
	again, err := lt.Host("a").Start(lab.Cmd{Argv: source})
	if err != nil {
		t.Fatal(err)
	}
	if err := lt.Host("a").WaitFor(t.Context(), active); err != nil {
		t.Errorf("another connection: %v", err)
	}
	_ = again.Signal(unix.SIGKILL)
}

// unload removes the module right after its last connection, while the worker of its group is still scheduled, and waits
// until the worker's time is over.
func unload(t *testing.T, lt *lab.Test) {
	lt.Must("a", "ip link set lo up")
	lt.Must("a", fmt.Sprintf("smcflow states 127.0.0.1:%d >/run/states 2>&1 & echo $! >/run/states.pid", statesPort))
	if err := lt.Host("a").WaitFor(t.Context(), "grep -q ready /run/states"); err != nil {
		t.Fatalf("%v: %s", err, lt.Must("a", "cat /run/states"))
	}
	lt.Must("a", "kill -9 $(cat /run/states.pid); rmmod smc_diag 2>/dev/null; until rmmod smc 2>/dev/null; do sleep 0.1; done; sleep 3")
	if got := lt.Must("a", "lsmod | grep -c ^smc || true"); got != "0\n" {
		t.Errorf("%q modules are left", got)
	}
}
