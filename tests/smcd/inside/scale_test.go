// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// settled checks at the end of a test that nothing of our module's is left, and that the kernel has its memory back.
func settled(t *testing.T) {
	t.Helper()
	ours.Need(t)
	guest.Settled(t)
}

// ping sends a byte to the other end of a connection, and wants it there.
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

// TestScaleOpen holds five thousand connections, each of which works, and looks what an idle one costs.
func TestScaleOpen(t *testing.T) {
	settled(t)
	const n = 5000
	onlySMC(t, n)
	guest.RaiseFiles(t, 2*n+1000)
	before := guest.Meminfo(t, "MemAvailable")
	begin := time.Now()
	clients, servers := pairs(t, here, n, 0)
	defer func() {
		for _, fd := range append(clients, servers...) {
			guest.Abort(fd)
		}
	}()
	t.Logf("%d connections in %v", n, time.Since(begin))
	const most = 40
	if each := float64(before-guest.Meminfo(t, "MemAvailable")) / n; each > most {
		t.Errorf("an idle connection costs %.1f KiB, want at most %d", each, most)
	} else {
		t.Logf("an idle connection costs %.1f KiB", each)
	}
	for i := range clients {
		if err := errors.Join(ping(clients[i], servers[i], byte(i)), ping(servers[i], clients[i], byte(i>>4))); err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
	}
	if used, err := guest.Objects("smc_conn"); err != nil || used < 2*n {
		t.Errorf("%d ends of connections, want at least %d, %v", used, 2*n, err)
	}
	// What was used for a moment is given back, too: a page for each direction.
	guest.Await(t, 60*time.Second, func() string {
		if each := float64(before-guest.Meminfo(t, "MemAvailable")) / n; each > most {
			return fmt.Sprintf("an idle connection costs %.1f KiB after it has been used", each)
		}
		return ""
	})
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
	case 1: // something is left to read
		return c[i/4%2].write(10, always(writers["send"], 10))
	case 2:
		return unix.SetsockoptLinger(int(rawFD(c[i/4%2])), unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	default: // the client's close comes first
		return nil
	}
}

// TestScaleCycles opens, uses and closes connections from several threads.
func TestScaleCycles(t *testing.T) {
	settled(t)
	n := length(3000, 20_000)
	if overR {
		n /= 5
	}
	onlySMC(t, uint64(n))
	file, err := tableFile()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	// One round first, so that what the kernel keeps is there.
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
