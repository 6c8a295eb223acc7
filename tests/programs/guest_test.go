// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package programs runs unchanged servers and clients of other projects over AF_SMC sockets of our module. A shim that is
// preloaded turns their TCP sockets into AF_SMC sockets, or a rule of the policy does, which they must not notice.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// Places in the guest.
const (
	shimInside = "/run/preload.so"
	workInside = "/run/work"
)

// guest is a booted kernel with our module, the shim, and a directory to work in.
type guest struct{ *lab.Test }

// boot starts a guest that can reach itself by SMC-R, too.
func boot(t *testing.T, kernel string) *guest {
	t.Helper()
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shim := compileShim(t)
	g := &guest{lab.Start(t, lab.Options{Kernel: kernel, CPUs: 2, Memory: 1536, Programs: []string{dir}})}
	if err := g.Host("a").WriteFile(t.Context(), shimInside, shim, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := g.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	if err := g.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	g.Must("a", "mkdir "+workInside)
	return g
}

// compileShim returns the shim as a shared library.
func compileShim(t *testing.T) []byte {
	t.Helper()
	library := filepath.Join(t.TempDir(), "preload.so")
	args := []string{"-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o", library, "preload/preload.c"}
	if out, err := exec.CommandContext(t.Context(), "cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	data, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// empty waits until no AF_SMC socket is left.
func (g *guest) empty(t *testing.T) {
	t.Helper()
	if err := g.Host("a").WaitFor(t.Context(), `smcss -a; test "$(smcss -a | wc -l)" = 1`); err != nil {
		t.Error(err)
	}
}

// unload removes the modules, which is only possible if all sockets have been freed.
func (g *guest) unload(t *testing.T) {
	if err := g.Host("a").WaitFor(t.Context(), "rmmod smc_diag 2>&1 || test ! -e /sys/module/smc_diag; rmmod smc"); err != nil {
		t.Error(err)
	}
}

// transport is the transport of connections between two AF_SMC sockets.
type transport string

const (
	smcd transport = "smcd"
	smcr transport = "smcr"
	tcp  transport = "tcp" // all fall back
)

// way is the way in which a program's server and client communicate.
type way struct {
	transport
	// Which side has AF_SMC sockets; the other has TCP sockets.
	server, client bool
	// rule means that a rule for everything makes their sockets SMC, and not the shim.
	rule bool
}

func (w way) String() string {
	kind := map[bool]string{true: "smc", false: "tcp"}
	if w.rule {
		return "by a rule"
	}
	return kind[w.server] + " server, " + kind[w.client] + " client"
}

// smc reports whether the connections use SMC-D or SMC-R. If not, those of AF_SMC sockets fall back.
func (w way) smc() bool { return w.transport != tcp && w.server && w.client }

// at lists the loopback addresses that a client uses. SMC-R version 2 is for IPv4 only, which sockets of IPv6 support too.
func (w way) at(text string) string {
	if w.transport == smcr {
		return strings.NewReplacer("127.0.0.1", lab.SelfAddr, "::1", "::ffff:"+lab.SelfAddr).Replace(text)
	}
	return text
}

// client is a command of the client's side, run in the directory for it.
func (s *session) client(argv ...string) lab.Cmd {
	there := slices.Clone(argv)
	for i := range there {
		there[i] = s.at(there[i])
	}
	return lab.Cmd{Argv: there, Env: env(s.way.client && !s.rule), Dir: workInside}
}

// server returns a command of the server's side. The server listens on all addresses if the loopback address is not sufficient.
func (s *session) server(argv ...string) lab.Cmd {
	everywhere := slices.Clone(argv)
	for i := range everywhere {
		if s.transport == smcr {
			everywhere[i] = strings.NewReplacer("127.0.0.1", "0.0.0.0", "::1", "::").Replace(argv[i])
		}
	}
	return lab.Cmd{Argv: everywhere, Env: env(s.way.server && !s.rule), Dir: workInside}
}

// counters reads the counters of the transport.
func (s *session) counters() lab.Counters {
	if s.transport == smcr {
		return s.CountersR("a")
	}
	return s.Counters("a")
}

// allWays returns all ways. Except in full runs, it leaves out connections that fall back, and those of SMC-R to TCP sockets.
func allWays() [][]way {
	ways := func(tr transport) []way {
		return []way{{tr, true, true, false}, {tr, true, false, false}, {tr, false, true, false}, {tr, true, true, true}}
	}
	all := [][]way{ways(smcd), ways(smcr), ways(tcp)}
	if !lab.Full() {
		all = [][]way{all[0], all[1][:1]}
	}
	return all
}

// program is a server with its clients.
type program struct {
	name string
	// prepare writes the files that the server needs; may be nil.
	prepare func(t *testing.T, g *guest)
	// server is the command, and port the one that it listens on.
	server []string
	port   int
	// ready is a script that succeeds once the server can work; empty if that is when it listens.
	ready string
	// stop ends the server, which then exits with this status.
	stop unix.Signal
	code int
	// client talks to the server.
	client func(t *testing.T, s *session)
	// atLeast is how many connections the client makes.
	atLeast int
	// hold is the command of a client that stays connected.
	hold []string
	// mixed means that the program is run with TCP sockets on one side, too.
	mixed bool
	// slow means that, except in full runs, it runs only over SMC-D by a rule.
	slow bool
	// ruled means that it runs only by a rule.
	ruled bool
	// rule has the conditions of that rule, if it is not for everything.
	rule string
	// shown are the beginnings of the names by which smcss -p shows the programs of both ends.
	shown []string
}

// runsOver reports whether the program is to run in a way.
func (p program) runsOver(w way) bool {
	if (p.slow || p.ruled) && !lab.Full() {
		return w.transport == smcd && w.rule
	}
	if p.ruled {
		return w.rule
	}
	return p.mixed || (w.server && w.client)
}

// session is one conversation of a program.
type session struct {
	*guest
	way
}

// env returns the environment that turns all TCP sockets into AF_SMC sockets, if smc is set.
func env(smc bool) []string {
	if smc {
		return []string{"LD_PRELOAD=" + shimInside}
	}
	return nil
}

// sh runs a script on the client's side, which must succeed, and returns its output.
func (s *session) sh(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	r, err := s.Host("a").Run(ctx, s.client("/bin/sh", "-euc", script))
	if err != nil {
		t.Fatalf("%v\n%s\n%s%s", err, script, r.Stdout, r.Stderr)
	}
	if r.Code != 0 {
		t.Fatalf("exit status %d of: %s\n%s%s", r.Code, script, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// all runs the programs in all configurations.
func (g *guest) all(t *testing.T, programs []program, ways []way) {
	loopback := map[transport]int{smcd: 2}
	g.Must("a", fmt.Sprintf("sysctl -qw net.smc.loopback=%d", loopback[ways[0].transport]))
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for _, w := range ways {
				if p.runsOver(w) {
					t.Run(w.String(), func(t *testing.T) { p.converse(t, &session{g, w}) })
				}
				if p.runsOver(w) && w.rule && w.transport == smcd && (p.ruled || lab.Full()) {
					t.Run("back to TCP", func(t *testing.T) { p.backToTCP(t, &session{g, w}) })
				}
			}
		})
	}
}

// converse starts the server, runs the client, and proves that their sockets were of the expected kind.
func (p program) converse(t *testing.T, s *session) {
	if s.rule {
		s.Must("a", p.smcRule())
		defer s.Must("a", "smc_policy flush")
	}
	server, err := s.Host("a").Start(s.server(p.server...))
	if err != nil {
		t.Fatal(err)
	}
	defer p.end(t, s, server)
	p.await(t, s)
	listeners := s.Must("a", fmt.Sprintf("smcss --state listen --port %d", p.port))
	if got := strings.Contains(listeners, "LISTEN"); got != s.way.server {
		t.Errorf("listens on an AF_SMC socket: %t\n%s", got, listeners)
	}
	before := s.counters()
	p.client(t, s)
	p.look(t, s)
	now := s.counters()
	p.count(t, s, "server", s.way.server, now.Connections.ServerV2-before.Connections.ServerV2, before.Fallback.Server, now.Fallback.Server)
	p.count(t, s, "client", s.way.client, now.Connections.ClientV2-before.Connections.ClientV2, before.Fallback.Client, now.Fallback.Client)
}

// await waits until the server can work.
func (p program) await(t *testing.T, s *session) {
	t.Helper()
	listening := fmt.Sprintf("ss -Hltn 'sport = :%d' | grep -q .", p.port)
	if err := s.Host("a").WaitFor(t.Context(), listening+"\n"+s.at(p.ready)); err != nil {
		t.Fatal(err)
	}
}

// count checks the outcomes of the connections of one side. Where there is a transport, only a TCP socket makes them fall
// back.
func (p program) count(t *testing.T, s *session, side string, smc bool, carried int, before, now lab.Fallbacks) {
	t.Helper()
	fell := now.Total - before.Total
	noPeer := now.Of("PEER_NO_SMC") - before.Of("PEER_NO_SMC")
	good := carried == 0 && fell == 0
	switch {
	case s.smc():
		good = carried >= p.atLeast && fell == 0
	case smc:
		good = carried == 0 && fell >= p.atLeast && (s.transport == tcp || fell == noPeer)
	}
	if !good {
		t.Errorf("of at least %d connections of the %s, %d went by SMC and %d fell back, %d because of their peer: %s",
			p.atLeast, side, carried, fell, noPeer, s.Must("a", "smcd -ad stats; smcr -ad stats"))
	}
}

// look checks the output of smcss for a connection that lasts until then.
func (p program) look(t *testing.T, s *session) {
	t.Helper()
	client, err := s.Host("a").Start(s.client(p.hold...))
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, client)
	mode, ends := tcp, 1
	if s.smc() {
		mode = s.transport
	}
	if s.way.server && s.way.client {
		ends = 2
	}
	list := fmt.Sprintf("smcss --state active --port %d", p.port)
	has := fmt.Sprintf(`test "$(%s --mode %s | wc -l)" -gt %d`, list, mode, ends) // below the heading
	if err := s.Host("a").WaitFor(t.Context(), list+"; "+has); err != nil {
		t.Errorf("no connection of mode %s: %v", mode, err)
	}
	if s.rule {
		p.attributed(t, s)
	}
	for _, other := range []transport{smcr, smcd, tcp} {
		if out := s.Must("a", list+" --mode "+string(other)); other != mode && strings.Contains(out, "ACTIVE") {
			t.Errorf("not of mode %s:\n%s", mode, out)
		}
	}
}

// end stops the server and waits until its sockets are gone.
func (p program) end(t *testing.T, s *session, server *lab.Process) {
	t.Helper()
	// The server may have ended by itself, with a status that shows it.
	_ = server.Signal(p.stop)
	// Do not use the test's context, which has ended if the test has failed.
	ctx, cancel := context.WithTimeout(context.Background(), lab.Scale(20*time.Second))
	defer cancel()
	r, err := server.Wait(ctx)
	if err != nil {
		t.Errorf("%v\n%s%s", err, r.Stdout, r.Stderr)
	}
	if r.Code != p.code || t.Failed() {
		t.Errorf("the server's exit status is %d, %d expected:\n%s%s", r.Code, p.code, r.Stdout, r.Stderr)
	}
	s.empty(t)
}
