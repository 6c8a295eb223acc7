// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestOvertaken has a client of TCP connect right after a client that asks for SMC and stays silent. A program that waits for
// edge-triggered events must get one at once.
func TestOvertaken(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	at := netip.AddrPortFrom(service.Addr(), 7402)
	listener, err := guest.Listen(at, 64)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(listener)
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(ep)
	edge := unix.EpollEvent{Events: unix.EPOLLIN | 1<<31, Fd: int32(listener)}
	err = errors.Join(unix.SetNonblock(listener, true), unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, listener, &edge))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 30 {
		if err := overtake(t.Context(), n.NewTCP(address(false, 11, i)), at, listener, ep); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

// overtake is one round: the silent client, the other one, the event, and the connection.
func overtake(ctx context.Context, silent *peer.TCP, at netip.AddrPort, listener, ep int) error {
	ctx, cancel := context.WithTimeout(ctx, handshakeWait)
	defer cancel()
	_, sa := guest.Sockaddr(at)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := silent.Connect(ctx, at, append(append([]byte{}, peer.MSS...), peer.Option...)); err != nil {
		return err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return err
	}
	// Do not call accept() first: it would itself look for connections behind the silent one.
	conn, err := -1, error(unix.EAGAIN)
	for errors.Is(err, unix.EAGAIN) {
		if err := event(ep); err != nil {
			return err
		}
		conn, _, err = unix.Accept4(listener, unix.SOCK_CLOEXEC)
	}
	if err != nil {
		return err
	}
	return errors.Join(unix.Close(conn), silent.Put(silent.Segment(peer.RST|peer.ACK)))
}

// event waits for an event of an epoll descriptor.
func event(ep int) error {
	for {
		n, err := unix.EpollWait(ep, make([]unix.EpollEvent, 1), int(promptTCP.Milliseconds()))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return fmt.Errorf("no event within %v", promptTCP)
		default:
			return nil
		}
	}
}
