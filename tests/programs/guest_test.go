// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package programs runs servers and clients of other people, unchanged, over AF_SMC sockets of our module. A shim that
// is loaded before the C library makes AF_SMC sockets of their TCP sockets; they must not notice.
package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/lab"
	"golang.org/x/sys/unix"
)

// Places in the guest.
const (
	shimInside = "/run/preload.so"
	workInside = "/run/work"
)

// kernels are those that take their turn; the oldest only in full runs, for its module is the one that changes least.
func kernels() []string {
	all := lab.TestSeries()
	if os.Getenv("SMCKIT_FULL") != "" || len(all) == 1 {
		return all
	}
	return slices.DeleteFunc(all, func(series string) bool { return series == "6.1" })
}

// guest is a booted kernel with our module, the shim, and a directory to work in.
type guest struct{ *lab.Test }

// boot starts a guest that has the loopback interface only.
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
	g.Must("a", "ip link set lo up; mkdir "+workInside)
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

// unload removes the modules, which works only if nothing is left of any socket.
func (g *guest) unload(t *testing.T) {
	if err := g.Host("a").WaitFor(t.Context(), "rmmod smc_diag 2>&1 || test ! -e /sys/module/smc_diag; rmmod smc"); err != nil {
		t.Error(err)
	}
}

// ends says which side of a conversation has AF_SMC sockets; the other has TCP sockets.
type ends struct{ server, client bool }

func (e ends) String() string {
	kind := map[bool]string{true: "smc", false: "tcp"}
	return kind[e.server] + " server, " + kind[e.client] + " client"
}

// program is a server, and what its clients do.
type program struct {
	name string
	// prepare writes what the server needs; may be nil.
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
	// mixed programs are run with TCP sockets on one side, too.
	mixed bool
}

// session is one conversation of a program.
type session struct {
	*guest
	ends ends
}

// env makes AF_SMC sockets of all TCP sockets, if asked to.
func env(smc bool) []string {
	if smc {
		return []string{"LD_PRELOAD=" + shimInside}
	}
	return nil
}

// sh runs a script on the client's side, which must succeed. It returns what the script prints.
func (s *session) sh(t *testing.T, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(60*time.Second))
	defer cancel()
	cmd := lab.Cmd{Argv: []string{"/bin/sh", "-euc", script}, Env: env(s.ends.client), Dir: workInside}
	r, err := s.Host("a").Run(ctx, cmd)
	if err != nil {
		t.Fatalf("%v\n%s\n%s%s", err, script, r.Stdout, r.Stderr)
	}
	if r.Code != 0 {
		t.Fatalf("exit status %d of: %s\n%s%s", r.Code, script, r.Stdout, r.Stderr)
	}
	return r.Stdout
}

// run runs the program with sockets of all kinds that it is to be run with.
func (p program) run(t *testing.T, g *guest) {
	if p.prepare != nil {
		p.prepare(t, g)
	}
	all := []ends{{true, true}}
	if p.mixed {
		all = append(all, ends{true, false}, ends{false, true})
	}
	for _, e := range all {
		t.Run(e.String(), func(t *testing.T) { p.converse(t, &session{g, e}) })
	}
}

// converse starts the server, lets the client talk to it, and proves that their sockets were what they were meant to be.
func (p program) converse(t *testing.T, s *session) {
	server, err := s.Host("a").Start(lab.Cmd{Argv: p.server, Env: env(s.ends.server), Dir: workInside})
	if err != nil {
		t.Fatal(err)
	}
	defer p.end(t, s, server)
	listening := fmt.Sprintf("ss -Hltn 'sport = :%d' | grep -q .", p.port)
	if err := s.Host("a").WaitFor(t.Context(), listening+"\n"+p.ready); err != nil {
		t.Fatal(err)
	}
	listeners := s.Must("a", fmt.Sprintf("smcss --state listen --port %d", p.port))
	if got := strings.Contains(listeners, "LISTEN"); got != s.ends.server {
		t.Errorf("listens on an AF_SMC socket: %t\n%s", got, listeners)
	}
	before := s.fallbacks(t)
	p.client(t, s)
	after := s.fallbacks(t)
	check := func(side string, smc bool, count int) {
		if smc && count < p.atLeast || !smc && count != 0 {
			t.Errorf("%d connections of the %s fell back, of at least %d, AF_SMC sockets: %t", count, side, p.atLeast, smc)
		}
	}
	check("server", s.ends.server, after.server-before.server)
	check("client", s.ends.client, after.client-before.client)
}

// end stops the server and waits until its sockets are gone.
func (p program) end(t *testing.T, s *session, server *lab.Process) {
	t.Helper()
	// The server may have ended of its own, which its status tells.
	_ = server.Signal(p.stop)
	// Without the test's context: it is over for a test that has failed.
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

// fallbacks counts the AF_SMC connections that have become TCP connections since the module was loaded.
type fallbacks struct{ server, client int }

func (g *guest) fallbacks(t *testing.T) fallbacks {
	t.Helper()
	var stats struct {
		Fallback    struct{ Client, Server struct{ Total int } }
		Connections struct{ Total int }
	}
	out := g.Must("a", "smcr stats --json -d")
	if err := json.Unmarshal([]byte(out), &stats); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if stats.Connections.Total != 0 {
		t.Errorf("%d connections do not use TCP: by what?", stats.Connections.Total)
	}
	return fallbacks{server: stats.Fallback.Server.Total, client: stats.Fallback.Client.Total}
}
