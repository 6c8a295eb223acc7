// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// shared opens a listener with SO_REUSEPORT.
func shared(addr netip.AddrPort) (int, error) {
	fd, sa, err := socket(addr, 0)
	if err != nil {
		return -1, err
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), unix.Bind(fd, sa), unix.Listen(fd, 64))
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// reflect sends back the first byte of each connection, until the listener is shut down.
func reflect(l int) error {
	for {
		fd, err := guest.Accept(l)
		if errors.Is(err, unix.EINVAL) {
			return nil
		}
		if err != nil {
			return err
		}
		var b [1]byte
		n, _, err := unix.Recvfrom(fd, b[:], 0)
		if err == nil && n == 1 {
			_, err = unix.SendmsgN(fd, b[:], nil, nil, unix.MSG_NOSIGNAL)
		}
		unix.Close(fd)
		if err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.EPIPE) {
			return err
		}
	}
}

// pingEcho sends a byte and checks that it comes back.
func pingEcho(addr netip.AddrPort, b byte) error {
	fd, err := connect(addr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := guest.Timeout(fd, 20*time.Second); err != nil {
		return err
	}
	return ping(fd, fd, b)
}

// TestReuseport connects to a port with two listeners, of which one closes at any time: no connection is left behind or given
// to the wrong listener, and those of the other listener are not disturbed.
func TestReuseport(t *testing.T) {
	settled(t)
	before := count(t)
	addr := netip.AddrPortFrom(here.Addr(), 7400)
	stays, err := shared(addr)
	if err != nil {
		t.Fatal(err)
	}
	var servers errgroup.Group
	servers.Go(func() error { return reflect(stays) })
	rounds := length(20, 200)
	for round := range rounds {
		goes, err := shared(addr)
		if err != nil {
			t.Fatal(err)
		}
		servers.Go(func() error { return reflect(goes) })
		var clients errgroup.Group
		for i := range 4 {
			clients.Go(func() error {
				for range 8 {
					err := pingEcho(addr, byte(i))
					// As with TCP, connections in the queue of the closed listener are reset.
					if err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EPIPE) {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				return nil
			})
		}
		if err := pingEcho(addr, 1); err != nil {
			t.Fatalf("with both listeners: %v", err)
		}
		if err := unix.Shutdown(goes, unix.SHUT_RDWR); err != nil {
			t.Fatal(err)
		}
		if err := clients.Wait(); err != nil {
			t.Error(err)
		}
		unix.Close(goes)
		if err := pingEcho(addr, 2); err != nil {
			t.Fatalf("with one listener: %v", err)
		}
	}
	if err := unix.Shutdown(stays, unix.SHUT_RDWR); err != nil {
		t.Fatal(err)
	}
	if err := servers.Wait(); err != nil {
		t.Error(err)
	}
	unix.Close(stays)
	// A listener that is about to close no longer announces SMC, so some connections may use TCP.
	if now := count(t); now.clients < before.clients+uint64(16*rounds) {
		t.Errorf("%+v became %+v", before, now)
	}
}

// sharedListeners opens n listeners on a port that send back what they get, until the result is called.
func sharedListeners(t *testing.T, addr netip.AddrPort, n int) (end func()) {
	t.Helper()
	var servers errgroup.Group
	var fds []int
	for range n {
		fd, err := shared(addr)
		if err != nil {
			t.Fatal(err)
		}
		fds = append(fds, fd)
	}
	for _, fd := range fds {
		servers.Go(func() error { return reflect(fd) })
	}
	return func() {
		for _, fd := range fds {
			if err := unix.Shutdown(fd, unix.SHUT_RDWR); err != nil {
				t.Error(err)
			}
		}
		if err := servers.Wait(); err != nil {
			t.Error(err)
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
}

// TestReuseportManyListeners has thousands of listeners beside those that answer, some of which share a port. The module finds the
// listener of each promise among them: all connections are SMC, also after the others have begun to listen again, and after they have
// been closed.
func TestReuseportManyListeners(t *testing.T) {
	settled(t)
	const answering, clients = 8, 200
	idle := length(2000, 4000)
	guest.RaiseFiles(t, uint64(2*idle))
	onlySMC(t, 4*clients)
	addr, other := netip.AddrPortFrom(here.Addr(), 7400), netip.AddrPortFrom(here.Addr(), 7401)
	var unused []int
	closeIdle := func() {
		for _, fd := range unused {
			unix.Close(fd)
		}
		unused = nil
	}
	defer closeIdle()
	for i := range idle {
		fd, err := shared(netip.AddrPortFrom(here.Addr(), uint16(10_000+i*4)))
		if err != nil {
			t.Fatal(err)
		}
		unused = append(unused, fd)
	}
	pings := func(addr netip.AddrPort, when string) {
		t.Helper()
		for i := range clients {
			if err := pingEcho(addr, byte(i)); err != nil {
				t.Fatalf("%s: connection %d to %s: %v", when, i, addr, err)
			}
		}
	}
	endOther := sharedListeners(t, other, 1)
	end := sharedListeners(t, addr, answering)
	pings(addr, "with all listeners")
	pings(other, "with all listeners")
	end()
	for _, fd := range unused {
		// The same sockets listen again, which begins after shutdown().
		if err := errors.Join(unix.Shutdown(fd, unix.SHUT_RDWR), unix.Listen(fd, 64)); err != nil {
			t.Fatal(err)
		}
	}
	pings(other, "after others have begun to listen again")
	closeIdle()
	pings(other, "after others have been closed")
	endOther()
}

// farShared opens a listener with SO_REUSEPORT in the other namespace. With AF_INET, it is plain TCP.
func farShared(t *testing.T, family int) (l int) {
	t.Helper()
	proto, sa := guest.Sockaddr(far)
	if family == unix.AF_INET {
		proto = 0
	}
	err := inFar(func() (err error) {
		l, err = unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
		if err != nil {
			return err
		}
		return errors.Join(unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), unix.Bind(l, sa), unix.Listen(l, 64),
			guest.Timeout(l, noticeTimeout))
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestReuseportMigrates closes a listener while TCP has a connection for it that is not accepted. TCP gives it to another
// listener of the port, of plain TCP, whose application must get what the client's sends, and no CLC message.
func TestReuseportMigrates(t *testing.T) {
	needD(t)
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	guest.Run(t, "ip netns exec far sysctl -qw net.ipv4.tcp_migrate_req=1")
	before := count(t)
	closes := farShared(t, unix.AF_SMC)
	var client errgroup.Group
	client.Go(func() error { return pingEcho(far, 'm') })
	guest.Await(t, noticeTimeout, func() string {
		if queue := guest.Run(t, "ip netns exec far ss -Hltn 'sport = :7000' | awk '{print $2}'"); strings.TrimSpace(queue) != "1" {
			return "no connection is in the queue of the listener"
		}
		return ""
	})
	stays := farShared(t, unix.AF_INET)
	defer unix.Close(stays)
	if err := unix.Close(closes); err != nil {
		t.Fatal(err)
	}
	fd, err := guest.Accept(stays)
	if err != nil {
		t.Fatalf("the listener that stays has not got the connection: %v", err)
	}
	defer guest.Abort(fd)
	b := make([]byte, 100)
	n, err := unix.Read(fd, b)
	if err != nil || string(b[:n]) != "m" {
		t.Fatalf("the server has got %q, want \"m\", %v", b[:max(n, 0)], err)
	}
	if _, err := unix.Write(fd, b[:n]); err != nil {
		t.Error(err)
	}
	if err := client.Wait(); err != nil {
		t.Error(err)
	}
	if now := count(t); now.clients != before.clients || now.fallbacks != before.fallbacks+1 {
		t.Errorf("want one more connection that is TCP; %+v became %+v", before, now)
	}
}
