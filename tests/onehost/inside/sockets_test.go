// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside contains the tests that tests/onehost runs in guests with our module: in one guest, connections with itself
// use SMC-D, in one SMC-R, and in one smc_null.ko makes them fall back to TCP. Elsewhere its tests are skipped.
package inside

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// ours is made by tests/onehost in guests whose connections with themselves are SMC.
const ours = guest.SMCDGuest

// here is the address of listeners. overR is set if it is reached by SMC-R: then this file contains the address. overTCP is set
// if connections fall back.
var (
	here, overR = where("/run/smckit-here")
	overTCP     = exists(string(guest.NullGuest))
)

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func where(file string) (netip.AddrPort, bool) {
	b, err := os.ReadFile(file)
	addr, perr := netip.ParseAddr(strings.TrimSpace(string(b)))
	if err != nil || perr != nil {
		return netip.MustParseAddrPort("127.0.0.1:7000"), false
	}
	return netip.AddrPortFrom(addr, 7000), true
}

// needD skips tests that require SMC-D.
func needD(t *testing.T) {
	t.Helper()
	if overR {
		t.Skip("connections are SMC-R")
	}
}

// length returns one number for short runs, and the other for runs that may take long.
func length(short, full int) int {
	if ours.Full() || guest.NullGuest.Full() {
		return full
	}
	return short
}

// socket opens a socket with this receive buffer, unless it is 0. Limits of unprivileged users do not apply.
func socket(addr netip.AddrPort, rcvbuf int) (fd int, sa unix.Sockaddr, err error) {
	fd, sa, err = guest.Socket(addr)
	if err != nil {
		return -1, nil, err
	}
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
	if rcvbuf != 0 {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, rcvbuf))
	}
	if err != nil {
		unix.Close(fd)
		return -1, nil, err
	}
	return fd, sa, nil
}

// listenOn has a socket listen on an address, on which others may have listened before.
func listenOn(fd int, sa unix.Sockaddr) error {
	return errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, sa), unix.Listen(fd, 10))
}

// listen opens a listener whose children have such a receive buffer.
func listen(addr netip.AddrPort, rcvbuf int) (int, error) {
	fd, sa, err := socket(addr, rcvbuf)
	if err != nil {
		return -1, err
	}
	if err := errors.Join(unix.Bind(fd, sa), unix.Listen(fd, 4096)); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return fd, nil
}

// connect opens a connection, blocking.
func connect(addr netip.AddrPort, rcvbuf int) (int, error) {
	fd, sa, err := socket(addr, rcvbuf)
	if err != nil {
		return -1, err
	}
	err = unix.Connect(fd, sa)
	for errors.Is(err, unix.EINTR) || errors.Is(err, unix.EALREADY) { // a signal of Go's runtime; the kernel continues to connect
		err = unix.Connect(fd, sa)
	}
	if err != nil && !errors.Is(err, unix.EISCONN) {
		unix.Close(fd)
		return -1, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return fd, nil
}

// pairs opens n connections through one listener. The pairs belong together: each is opened after the one before.
func pairs(t *testing.T, addr netip.AddrPort, n, rcvbuf int) (clients, servers []int) {
	t.Helper()
	l, err := listen(addr, rcvbuf)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	for range n {
		c, s := pairAt(t, l, addr, rcvbuf)
		clients, servers = append(clients, c), append(servers, s)
	}
	return clients, servers
}

// pairAt opens a connection to addr, where l listens, and accepts it.
func pairAt(t *testing.T, l int, addr netip.AddrPort, rcvbuf int) (client, server int) {
	t.Helper()
	client, err := connect(addr, rcvbuf)
	if err != nil {
		t.Fatal(err)
	}
	server, err = guest.Accept(l)
	if err != nil {
		unix.Close(client)
		t.Fatal(err)
	}
	return client, server
}

// counts are the numbers of connections in this thread's namespace.
type counts struct{ clients, servers, fallbacks uint64 }

func count(t *testing.T) counts {
	t.Helper()
	c, err := netlinksmc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.Stats(context.Background())
	f, ferr := c.FallbackStats(context.Background())
	if err := errors.Join(err, ferr); err != nil {
		t.Fatal(err)
	}
	kind := s.SMCD
	if overR {
		kind = s.SMCR
	}
	return counts{kind.ClientV2, kind.ServerV2, f.ClientTotal + f.ServerTotal}
}

// fallbacks returns how many connections of this thread's namespace have fallen back for a reason, as a client and as a server.
func fallbacks(reason netlinksmc.Reason) (client, server int, err error) {
	c, err := netlinksmc.New()
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	f, err := c.FallbackStats(context.Background())
	if err != nil {
		return 0, 0, err
	}
	for _, n := range f.Client {
		if n.Reason == reason {
			client += int(n.Count)
		}
	}
	for _, n := range f.Server {
		if n.Reason == reason {
			server += int(n.Count)
		}
	}
	return client, server, nil
}

// onlySMC checks at the end of a test that it has had connections, at least n, and that all were SMC-D, or SMC-R, unless the guest is one
// where they fall back.
func onlySMC(t *testing.T, n uint64) {
	t.Helper()
	if overTCP {
		return
	}
	ours.Need(t)
	before := count(t)
	t.Cleanup(func() {
		now := count(t)
		if now.clients < before.clients+n || now.servers < before.servers+n || now.fallbacks != before.fallbacks {
			t.Errorf("want %d connections of SMC and no fallback; %+v became %+v", n, before, now)
		}
	})
}
