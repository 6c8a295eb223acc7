// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// shared opens one of several listeners of a port.
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
		fd, err := accept(l)
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

// knock has a byte reflected.
func knock(addr netip.AddrPort, b byte) error {
	fd, err := connect(addr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := bounded(fd, 20*time.Second); err != nil {
		return err
	}
	return ping(fd, fd, b)
}

// TestReuseport has connections to a port with two listeners, of which one goes at any time: no connection is left
// behind, none is given to a listener that is not its own, and those of the other are not disturbed.
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
					err := knock(addr, byte(i))
					// What waits in the queue of the listener that goes is reset, as with TCP.
					if err != nil && !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.ECONNREFUSED) && !errors.Is(err, unix.EPIPE) {
						return fmt.Errorf("round %d: %w", round, err)
					}
				}
				return nil
			})
		}
		if err := knock(addr, 1); err != nil {
			t.Fatalf("with both listeners: %v", err)
		}
		if err := unix.Shutdown(goes, unix.SHUT_RDWR); err != nil {
			t.Fatal(err)
		}
		if err := clients.Wait(); err != nil {
			t.Error(err)
		}
		unix.Close(goes)
		if err := knock(addr, 2); err != nil {
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
	// A listener that is about to close says no more that it speaks SMC: some may be TCP.
	if now := count(t); now.clients < before.clients+uint64(16*rounds) {
		t.Errorf("%+v became %+v", before, now)
	}
}
