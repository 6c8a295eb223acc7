// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// InNamespace returns the command line that runs argv in a network namespace of a host. It is argv itself if the name is empty.
func InNamespace(namespace string, argv ...string) []string {
	if namespace == "" {
		return argv
	}
	return append([]string{"ip", "netns", "exec", namespace}, argv...)
}

// StartIn starts a program in a network namespace of a host, or in the host's own if the name is empty.
func (lt *Test) StartIn(host, namespace string, argv ...string) *Process {
	lt.t.Helper()
	p, err := lt.Host(host).Start(Cmd{Argv: InNamespace(namespace, argv...)})
	if err != nil {
		lt.t.Fatal(err)
	}
	return p
}

// Serve starts smcflow's server, "echo" or "sink", at an address and port in a network namespace of a host, and returns when it
// listens.
func (lt *Test) Serve(host, namespace, server, address string) *Process {
	lt.t.Helper()
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		lt.t.Fatal(err)
	}
	p := lt.StartIn(host, namespace, "smcflow", server, address)
	show := InNamespace(namespace, "smcss", "--state", "listen", "--port", fmt.Sprint(at.Port()))
	if err := lt.Host(host).WaitFor(lt.t.Context(), strings.Join(show, " ")+" | grep -q LISTEN"); err != nil {
		lt.t.Fatal(err)
	}
	return p
}

// Stop sends SIGTERM to programs, such as smcflow's "keep", and checks that they exit with status 0.
func Stop(t testing.TB, programs ...*Process) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Scale(30*time.Second))
	defer cancel()
	for _, p := range programs {
		// Signal fails if the program has already ended. Then Wait returns its status.
		_ = p.Signal(unix.SIGTERM)
		if r, err := p.Wait(ctx); err != nil || r.Code != 0 {
			t.Errorf("a program that was to run until now: %v, %+v", err, r)
		}
	}
}

// Flow is a path of connections: from a network namespace of one host to an address in one of another, or of the same, host.
type Flow struct {
	Client, ClientNS string
	Server, ServerNS string
	Address          string
}

// Alternate makes connections four at once, beside streams that stay open.
const (
	AlternateStreams = 4
	atOnce           = 4
)

// AlternateConns is the number of connections that Alternate makes for each flow: a thousand, or $SMCKIT_ALTERNATE, which must be a
// multiple of four.
func AlternateConns(t testing.TB) int {
	t.Helper()
	text := os.Getenv("SMCKIT_ALTERNATE")
	if text == "" {
		return 1000
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < atOnce || n%atOnce != 0 {
		t.Fatalf("SMCKIT_ALTERNATE=%s is not a multiple of %d", text, atOnce)
	}
	return n
}

// Alternate makes AlternateConns connections for each flow at the same time, while others stream. All data must arrive.
func (lt *Test) Alternate(t *testing.T, stream Flow, flows ...Flow) {
	t.Helper()
	conns := AlternateConns(t)
	defer Kill(t, lt.Serve(stream.Server, stream.ServerNS, "echo", stream.Address))
	streams := lt.StartIn(stream.Client, stream.ClientNS, "smcflow", "keep", "--conns", fmt.Sprint(AlternateStreams),
		"--size", "60000", "--pause", "1ms", stream.Address)
	var group sync.WaitGroup
	for _, f := range flows {
		defer Kill(t, lt.Serve(f.Server, f.ServerNS, "echo", f.Address))
		p := lt.StartIn(f.Client, f.ClientNS, "smcflow", "check", "--conns", fmt.Sprint(atOnce),
			"--rounds", fmt.Sprint(conns/atOnce), "--size", "3000", f.Address)
		group.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), Scale(10*time.Minute))
			defer cancel()
			if r, err := p.Wait(ctx); err != nil || r.Code != 0 {
				t.Errorf("connections to %s: %v, %+v", f.Address, err, r)
			}
		})
	}
	group.Wait()
	Stop(t, streams)
}
