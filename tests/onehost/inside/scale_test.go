// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// settled checks at the end of a test that no objects of our module are left, and that the kernel's memory has been freed.
func settled(t *testing.T) {
	t.Helper()
	if overTCP {
		guest.UseNull(t, true)
		guest.MemoryBack(t, 24<<10, 60*time.Second)
		return
	}
	ours.Need(t)
	guest.Settled(t)
}

// ping sends a byte to the other end of a connection.
func ping(from, to int, b byte) error {
	if n, err := unix.SendmsgN(from, []byte{b}, nil, nil, unix.MSG_NOSIGNAL); n != 1 {
		return fmt.Errorf("send: %d, %w", n, err)
	}
	for {
		var buf [2]byte
		n, _, err := unix.Recvfrom(to, buf[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n != 1 || buf[0] != b {
			return fmt.Errorf("receive: %d bytes, %d for %d, %w", n, buf[0], b, err)
		}
		return nil
	}
}

// acceptAll accepts n connections, and returns them by the ports of their clients.
func acceptAll(l, n int) (map[int]int, error) {
	servers := map[int]int{}
	for len(servers) < n {
		fd, sa, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return servers, err
		}
		servers[sa.(*unix.SockaddrInet4).Port] = fd
	}
	return servers, nil
}

// connectAll opens n connections from several threads. Clients and servers at the same index are the ends of one connection. If
// it cannot, it fails the test and returns those that are open.
func connectAll(t *testing.T, n int) (clients, servers []int) {
	t.Helper()
	addr := netip.AddrPortFrom(here.Addr(), 7300)
	l, err := guest.Listen(addr, 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	const threads = 8
	var group errgroup.Group
	var accepted map[int]int
	group.Go(func() (err error) {
		accepted, err = acceptAll(l, n)
		return err
	})
	parts := make([][]int, threads)
	for i := range threads {
		group.Go(func() error {
			for range n / threads {
				fd, err := guest.Connect(addr, 30*time.Second)
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
	err = group.Wait()
	clients = slices.Concat(parts...)
	for _, fd := range accepted {
		servers = append(servers, fd)
	}
	if err != nil || len(clients) != n || len(servers) != n {
		t.Errorf("%d clients, %d servers, want %d: %v", len(clients), len(servers), n, err)
		return clients, servers
	}
	for i, fd := range clients {
		sa, err := unix.Getsockname(fd)
		if err != nil {
			t.Error(err)
			return clients, servers
		}
		servers[i] = accepted[sa.(*unix.SockaddrInet4).Port]
	}
	return clients, servers
}

// abortAll closes connections with a reset.
func abortAll(clients, servers []int) {
	for _, fd := range slices.Concat(clients, servers) {
		guest.Abort(fd)
	}
}

// TestScaleOpen keeps thousands of working connections open, and measures the memory of an idle SMC connection.
func TestScaleOpen(t *testing.T) {
	settled(t)
	n := 5000
	if overTCP {
		guest.UseNull(t, false)
		n = 10000
	}
	onlySMC(t, uint64(n))
	guest.RaiseFiles(t, uint64(2*n+1000))
	before := guest.Meminfo(t, "MemAvailable")
	begin := time.Now()
	clients, servers := connectAll(t, n)
	defer func() { abortAll(clients, servers) }()
	if t.Failed() {
		return
	}
	t.Logf("%d connections in %v", n, time.Since(begin))
	const most = 40
	costs := func(when string) string {
		if each := float64(before-guest.Meminfo(t, "MemAvailable")) / float64(n); each > most && !overTCP {
			return fmt.Sprintf("%s, an idle connection costs %.1f KiB, want at most %d", when, each, most)
		}
		return ""
	}
	if too := costs("at first"); too != "" {
		t.Error(too)
	}
	for i := range clients {
		if err := errors.Join(ping(clients[i], servers[i], byte(i)), ping(servers[i], clients[i], byte(i>>4))); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	slab := "smc_conn"
	if overTCP {
		slab = "smc_sock"
	}
	if used, err := guest.Objects(slab); err != nil || used < 2*n {
		t.Errorf("%d objects of %s, want at least %d, %v", used, slab, 2*n, err)
	}
	// The page for each direction that the pings have used is freed, too.
	guest.Await(t, 60*time.Second, func() string { return costs("after it has been used") })
}

// TestScaleResets opens connections from several threads, and closes all of them with a reset, again and again.
func TestScaleResets(t *testing.T) {
	settled(t)
	const n = 1000
	guest.RaiseFiles(t, 4*n)
	for range length(3, 50) {
		abortAll(connectAll(t, n))
		if t.Failed() {
			return
		}
	}
}

// cycle opens a connection, moves checked data both ways, and closes it in one of several ways.
func cycle(l int, addr netip.AddrPort, i int, file *os.File) error {
	client, err := connect(addr, 0)
	if err != nil {
		return err
	}
	server, err := guest.Accept(l)
	if err != nil {
		unix.Close(client)
		return err
	}
	c, err := newCouple(client, server, true, int64(i), file)
	if err != nil {
		return err
	}
	defer c.close()
	if err := c.exchange(int64(1+i*37%9000), always(writers["send"], 10_000), always(readers["recv"], 10_000)); err != nil {
		return err
	}
	switch i % 4 {
	case 0:
		return c.finish()
	case 1: // leaves unread data
		return c[i/4%2].write(10, always(writers["send"], 10))
	case 2:
		return unix.SetsockoptLinger(int(rawFD(c[i/4%2])), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	default: // the client closes first
		return nil
	}
}

// TestScaleCycles opens, uses and closes connections from several threads.
func TestScaleCycles(t *testing.T) {
	settled(t)
	n := length(1200, 20_000)
	if overR {
		n /= 5
	}
	onlySMC(t, uint64(n))
	file, err := tableFile()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// Run one round first, so that the kernel has allocated the memory that it keeps.
	before := 0
	for _, count := range []int{n / 10, n - n/10} {
		var group errgroup.Group
		const threads = 4
		for thread := range threads {
			addr := netip.AddrPortFrom(here.Addr(), uint16(7100+thread))
			group.Go(func() error {
				l, err := listen(addr, 0)
				if err != nil {
					return err
				}
				defer unix.Close(l)
				for i := range (count + threads - 1) / threads {
					if err := cycle(l, addr, i, file); err != nil {
						return fmt.Errorf("cycle %d: %w", i, err)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if before == 0 {
			before = guest.Meminfo(t, "MemAvailable")
		}
	}
	// In full runs that is half a KiB for each.
	const spare = 48 << 10
	guest.Await(t, 100*time.Second, func() string {
		if now := guest.Meminfo(t, "MemAvailable"); now < before-spare {
			return fmt.Sprintf("%d KiB are available, %d were before", now, before)
		}
		return ""
	})
}
