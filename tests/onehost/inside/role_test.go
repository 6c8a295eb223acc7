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
	const nobody = 65534
	return errors.Join(syscall.Setgroups(nil), syscall.Setgid(nobody), syscall.Setuid(nobody))
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
