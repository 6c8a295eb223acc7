// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// reconnects is how often each socket in TestAcceptedTurnedClient connects again.
const reconnects = 10

// TestAcceptedTurnedClient has an unprivileged user disconnect sockets that accept() has returned, and connect them to a
// listener: each is then a client.
func TestAcceptedTurnedClient(t *testing.T) {
	settled(t)
	onlySMC(t, reconnects)
	addr := netip.AddrPortFrom(here.Addr(), 7030)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), "SMCKIT_VICTIM=reconnects "+addr.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// reconnectAsNobody is the program of that user. Each end of a connection is alternately an accepted and a connected socket.
func reconnectAsNobody(addr netip.AddrPort) error {
	if err := dropPrivileges(); err != nil {
		return err
	}
	l, err := listen(addr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(l)
	c, err := connect(addr, 0)
	if err != nil {
		return err
	}
	s, err := guest.Accept(l)
	if err != nil {
		return err
	}
	for i := range reconnects {
		if err := guest.Disconnect(s); err != nil {
			return fmt.Errorf("round %d: disconnect: %w", i, err)
		}
		if err := connectNonblocking(s, addr); err != nil {
			return fmt.Errorf("round %d: connect: %w", i, err)
		}
		unix.Close(c)
		c = s
		if s, err = guest.Accept(l); err != nil {
			return fmt.Errorf("round %d: accept: %w", i, err)
		}
		if err := errors.Join(ping(c, s, 42), ping(s, c, 42)); err != nil {
			return fmt.Errorf("round %d: %w", i, err)
		}
	}
	unix.Close(c)
	unix.Close(s)
	return nil
}

// dropPrivileges makes this process one of the user nobody.
func dropPrivileges() error {
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(guest.Nobody), syscall.Setuid(guest.Nobody))
}

// connectNonblocking connects as programs with an event loop do, so that a worker of the kernel runs the handshake.
func connectNonblocking(fd int, addr netip.AddrPort) error {
	if err := unix.SetNonblock(fd, true); err != nil {
		return err
	}
	_, sa := guest.Sockaddr(addr)
	if err := unix.Connect(fd, sa); !errors.Is(err, unix.EINPROGRESS) {
		return err
	}
	for {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, -1)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if soerr, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); err != nil || soerr != 0 {
		return errors.Join(err, unix.Errno(soerr))
	}
	return unix.SetNonblock(fd, false)
}

// TestListenActive calls listen() on both ends of connections: while they are open, half closed, and closed. It must fail as with TCP,
// and change nothing.
func TestListenActive(t *testing.T) {
	settled(t)
	onlySMC(t, 2)
	const protocolSMC = 256
	for i, kind := range []struct {
		name             string
		family, protocol int
	}{{"TCP", unix.AF_INET, 0}, {"AF_SMC", unix.AF_SMC, 0}, {"IPPROTO_SMC", unix.AF_INET, protocolSMC}} {
		t.Run(kind.name, func(t *testing.T) {
			_, sa := guest.Sockaddr(netip.AddrPortFrom(here.Addr(), uint16(7031+i)))
			var fds [2]int
			for j := range fds {
				fd, err := unix.Socket(kind.family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, kind.protocol)
				if err != nil {
					t.Fatal(err)
				}
				defer unix.Close(fd)
				fds[j] = fd
			}
			l, c := fds[0], fds[1]
			if err := errors.Join(unix.Bind(l, sa), unix.Listen(l, 1), unix.Connect(c, sa)); err != nil {
				t.Fatal(err)
			}
			s, err := guest.Accept(l)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(s)
			listenInVain(t, c, s)
		})
	}
}

// listenInVain calls listen() on the ends of an open connection until it is closed.
func listenInVain(t *testing.T, client, server int) {
	t.Helper()
	try := func(state string) {
		t.Helper()
		for _, fd := range []int{client, server} {
			before := portOf(t, fd)
			if err := unix.Listen(fd, 5); !errors.Is(err, unix.EINVAL) {
				t.Errorf("listen() on a connection that is %s: %v, want EINVAL", state, err)
			}
			listens, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ACCEPTCONN)
			if after := portOf(t, fd); err != nil || listens != 0 || after != before {
				t.Errorf("a connection that is %s: SO_ACCEPTCONN is %d, %v, and its port %d was %d", state, listens, err, after, before)
			}
			if _, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); !errors.Is(err, unix.EINVAL) {
				t.Errorf("accept() on a connection that is %s: %v, want EINVAL", state, err)
			}
		}
	}
	try("open")
	if err := errors.Join(ping(client, server, 1), ping(server, client, 2), unix.Shutdown(client, unix.SHUT_WR)); err != nil {
		t.Fatal(err)
	}
	try("half closed")
	var b [1]byte
	n, _, err := unix.Recvfrom(server, b[:], 0)
	if err := errors.Join(err, ping(server, client, 3), unix.Shutdown(server, unix.SHUT_WR)); err != nil || n != 0 {
		t.Fatalf("the end of the client's data: %d bytes, %v", n, err)
	}
	if n, _, err := unix.Recvfrom(client, b[:], 0); err != nil || n != 0 {
		t.Fatalf("the end of the server's data: %d bytes, %v", n, err)
	}
	try("closed")
}
