// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

var manyAddr = netip.MustParseAddrPort("127.0.0.1:7300")

// acceptor takes so many connections, and hands them over.
func acceptor(l, n int) (fds []int, err error) {
	for len(fds) < n {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// meet opens so many connections from several threads. They are there even if not all could be opened.
func meet(t *testing.T, n int) (clients, servers []int) {
	t.Helper()
	l, err := guest.Listen(manyAddr, 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	const threads = 8
	var group errgroup.Group
	group.Go(func() (err error) {
		servers, err = acceptor(l, n)
		return err
	})
	parts := make([][]int, threads)
	for i := range threads {
		group.Go(func() error {
			for range n / threads {
				fd, err := guest.Connect(manyAddr, 30*time.Second)
				if fd >= 0 {
					parts[i] = append(parts[i], fd)
				}
				if err != nil {
					return errors.Join(err, unix.Shutdown(l, unix.SHUT_RDWR))
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, p := range parts {
		clients = append(clients, p...)
	}
	return clients, servers
}

// TestScaleOpen holds ten thousand connections that have fallen back.
func TestScaleOpen(t *testing.T) {
	guest.UseNull(t, false)
	const n = 10000
	guest.RaiseFiles(t, 2*n+1000)
	guest.MemoryBack(t, 24<<10, 60*time.Second)
	begin := time.Now()
	clients, servers := meet(t, n)
	t.Logf("%d connections in %v", len(clients), time.Since(begin))
	defer func() {
		for _, fd := range append(clients, servers...) {
			guest.Abort(fd)
		}
	}()
	if used, err := guest.Objects("smc_sock"); err != nil || used < 2*n {
		t.Errorf("%d records of sockets, want at least %d, %v", used, 2*n, err)
	}
	if len(clients) != n || len(servers) != n {
		t.Errorf("%d clients, %d servers, want %d", len(clients), len(servers), n)
	}
}

// TestScaleCycles opens and closes connections, one after the other.
func TestScaleCycles(t *testing.T) {
	guest.UseNull(t, true)
	guest.MemoryBack(t, 24<<10, 60*time.Second)
	rounds := 3
	if guest.NullGuest.Full() {
		rounds = 50
	}
	const n = 1000
	guest.RaiseFiles(t, 4*n)
	for range rounds {
		clients, servers := meet(t, n)
		for _, fd := range append(clients, servers...) {
			guest.Abort(fd)
		}
		if t.Failed() {
			return
		}
	}
}
