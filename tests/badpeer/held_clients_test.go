// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// TestHeldClients has the handshakes of a thousand clients of an unprivileged user time out while a thread of his holds the lock of each
// client's sock. Other handshakes go on meanwhile.
func TestHeldClients(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	e := guest.NewEcho(t, service, 64)
	defer e.Close(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patient)
	defer cancel()
	guest.RaiseFiles(t, 1<<14)
	holder := guest.NewHolder(t)
	clients := heldClients(ctx, t, n, holder)
	begin := time.Now()
	// Until the last of them has run out of time, and a little beyond that.
	for time.Since(begin) < handshakeWait+2*time.Second {
		if err := guest.Ask(service, "beside clients whose locks are held", promptTCP); err != nil {
			t.Fatalf("%s after the locks were taken: %v", time.Since(begin), err)
		}
	}
	holder.Release()
	for _, fd := range clients {
		if err := outcomeOf(fd); !errors.Is(err, unix.ETIMEDOUT) {
			t.Fatalf("the attempt of a client whose lock was held ended with %v", err)
		}
		unix.Close(fd)
	}
}

// patient is how long it may take to open all sockets on a busy machine.
const patient = 2 * time.Minute

// heldClients connects clients to servers that send a SYN-ACK and nothing more, and holds the lock of each as soon as it has
// sent its PROPOSAL.
func heldClients(ctx context.Context, t *testing.T, n *peer.Net, holder *guest.Holder) (clients []int) {
	t.Helper()
	var group errgroup.Group
	for i := range guest.HeldSockets(t) {
		p := n.NewTCP(netip.AddrPortFrom(address(false, 40, 0).Addr(), uint16(10_000+i)))
		fd, connect := clientOfNobody(t, p.Self)
		clients = append(clients, fd)
		group.Go(func() error {
			s := &tcpSession{ctx: ctx, TCP: p}
			if err := offered(s); err != nil {
				return fmt.Errorf("server %d: %w", i, err)
			}
			return holder.Hold(fd)
		})
		connect()
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return clients
}

// clientOfNobody opens a nonblocking socket of an unprivileged user, and returns what starts to connect it.
func clientOfNobody(t *testing.T, addr netip.AddrPort) (fd int, connect func()) {
	t.Helper()
	var sa unix.Sockaddr
	err := guest.AsNobody(func() (err error) {
		fd, sa, err = guest.Socket(addr)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return fd, func() {
		t.Helper()
		if err := guest.AsNobody(func() error { return unix.Connect(fd, sa) }); !errors.Is(err, unix.EINPROGRESS) {
			t.Fatalf("connect: %v", err)
		}
	}
}

// outcomeOf waits for the outcome of a nonblocking connect().
func outcomeOf(fd int) error {
	if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, int(patient.Milliseconds())); err != nil {
		return err
	}
	errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err == nil && errno != 0 {
		err = unix.Errno(errno)
	}
	return err
}
