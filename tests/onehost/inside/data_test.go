// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// The size of a ring is a power of two, less the head in front of the ring.
const (
	head     = 32
	smallest = 16<<10 - head
	usual    = 256<<10 - head
	largest  = 1<<20 - head
)

// rings are values of SO_RCVBUF by the size of the resulting ring; 0 does not set the option. Rings of SMC-R have no head.
var rings = ringsOf(overR)

func ringsOf(r bool) map[int]int {
	if r {
		return map[int]int{16 << 10: 8 << 10, 64 << 10: 0, 1 << 20: 1 << 20}
	}
	return map[int]int{smallest: 8 << 10, usual: 0, largest: 1 << 20}
}

// megabytes is length() in bytes, or a few, as emulated RDMA is slow.
func megabytes(short, full int) int64 {
	if overR {
		return int64(length(2, short)) << 20
	}
	return int64(length(short, full)) << 20
}

// couples opens connections, which the end of the test closes.
func couples(t *testing.T, n, rcvbuf int, blocking bool) []couple {
	t.Helper()
	file, err := tableFile()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	clients, servers := pairs(t, here, n, rcvbuf)
	var all []couple
	for i := range clients {
		c, err := newCouple(clients[i], servers[i], blocking, int64(i), file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		t.Cleanup(c.close)
	}
	return all
}

// around returns numbers and their neighbours.
func around(ns ...int) (all []int) {
	for _, n := range ns {
		all = append(all, n-1, n, n+1)
	}
	return all
}

// sizes are all up to a little more than a page, and those around pages, rings and powers of two.
func sizes() (all []int) {
	step, most := 1, 10<<20
	if overR {
		step, most = 53, 1<<20
	}
	for n := 1; n <= 4200; n += step {
		all = append(all, n)
	}
	for page := 2; page <= 20; page++ {
		all = append(all, around(page*4096, page*4096-head)...)
	}
	all = append(all, around(smallest, usual, 2*usual, 3*usual, largest)...)
	for n := 8192; n < most; n *= 2 {
		all = append(all, around(n)...)
	}
	return append(all, 10<<20-1, 10<<20)
}

// always returns the same way every time.
func always[F any](f F, n int) func() (F, int) { return func() (F, int) { return f, n } }

// TestSizes moves messages of every size both ways at once. Each is read to its last byte before the next.
func TestSizes(t *testing.T) {
	onlySMC(t, 1)
	c := couples(t, 1, 0, true)[0]
	const once = 16 << 20
	begin := time.Now()
	for _, n := range sizes() {
		if err := c.exchange(int64(n), always(writers["send"], once), always(readers["recv"], once)); err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
	}
	if err := c.finish(); err != nil {
		t.Error(err)
	}
	t.Logf("%d sizes in %v", len(sizes()), time.Since(begin))
}

// TestSizesToTheEnd moves one message, and the writer closes: all of it arrives, and then the end of the stream.
func TestSizesToTheEnd(t *testing.T) {
	onlySMC(t, 20)
	all := slices.Concat([]int{1, 2, 31, 32, 33}, around(4096, smallest, usual, 65536, 2*usual, 1<<20), []int{10 << 20})
	for _, n := range all {
		c := couples(t, 1, 0, true)[0]
		var group errgroup.Group
		group.Go(func() error {
			if err := c[0].write(int64(n), always(writers["send"], n)); err != nil {
				return err
			}
			return c[0].f.Close()
		})
		group.Go(func() error {
			if err := c[1].read(int64(n), always(readers["recv"], n+1)); err != nil {
				return err
			}
			if m, err := readers["recv"](c[1], 10); m != 0 || err == nil {
				return fmt.Errorf("%d bytes beyond the end, %w", m, err)
			}
			return nil
		})
		if err := group.Wait(); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

// TestRings checks how much a writer can write while the other end does not read, then reads it.
func TestRings(t *testing.T) {
	needD(t)
	onlySMC(t, 3)
	for ring, rcvbuf := range rings {
		c := couples(t, 1, rcvbuf, false)[0]
		for i, e := range c {
			got, err := fill(e)
			if err != nil || got != ring-head { // the page with the head counts as a whole
				t.Errorf("a receive buffer of %d takes %d bytes, want %d, %v", rcvbuf, got, ring, err)
			}
			if err := c[1-i].read(int64(got), always(readers["recv"], got)); err != nil {
				t.Error(err)
			}
		}
		if err := c.finish(); err != nil {
			t.Error(err)
		}
	}
}

// fill writes until the socket would block, and returns how many bytes it took.
func fill(e *end) (total int, err error) {
	for {
		n, err := unix.SendmsgN(int(rawFD(e)), noise(e.out.seed, e.out.pos, 1000), nil, nil, 0)
		if err == unix.EAGAIN {
			return total, nil
		}
		if err != nil {
			return total, err
		}
		total += n
		e.out.pos += int64(n)
	}
}

// rawFD returns the file descriptor without changing it: (*os.File).Fd would make it blocking.
func rawFD(e *end) (fd uintptr) {
	_, _ = call(e.raw.Write, func(n int) (int, error) { fd = uintptr(n); return 0, nil })
	return fd
}

// chunks are lengths of single writes and reads, from one byte to more than any ring.
var chunks = []int{1, 7, 31, 33, 1000, 4095, 4097, smallest, usual - 1, usual + 1, 200_001, 3 << 20}

// TestChunks writes in chunks of one length and reads in chunks of another, for all pairs of lengths and each size of ring.
func TestChunks(t *testing.T) {
	onlySMC(t, 3)
	for ring, rcvbuf := range rings {
		t.Run(fmt.Sprint(ring), func(t *testing.T) {
			c := couples(t, 1, rcvbuf, true)[0]
			for _, w := range chunks {
				for _, r := range chunks {
					// Send enough to wrap around the ring, unless that takes too long.
					total := min(3*ring, length(600, 50_000)*min(w, r), length(1, 16)<<18)
					if overR {
						total /= 8
					}
					if err := c.exchange(int64(total), always(writers["send"], w), always(readers["recv"], r)); err != nil {
						t.Fatalf("%d bytes, written by %d, read by %d: %v", total, w, r, err)
					}
				}
			}
			if err := c.finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// mixed chooses another way and another length each time, most often a short one.
func mixed[F any](ways map[string]F, seed uint64) func() (F, int) {
	names := slices.Sorted(maps.Keys(ways))
	r := rand.New(rand.NewPCG(seed, uint64(len(names))))
	var mu sync.Mutex
	return func() (F, int) {
		mu.Lock()
		defer mu.Unlock()
		return ways[names[r.IntN(len(names))]], 1 + r.IntN(1<<(1+r.IntN(18)))
	}
}

// TestMixed mixes all ways to write with all ways to read.
func TestMixed(t *testing.T) {
	onlySMC(t, 6)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for ring, rcvbuf := range rings {
		for _, blocking := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/blocking=%v", ring, blocking), func(t *testing.T) {
				c := couples(t, 1, rcvbuf, blocking)[0]
				if err := c.exchange(megabytes(8, 256), mixed(writers, seed), mixed(readers, seed)); err != nil {
					t.Fatal(err)
				}
				if err := c.finish(); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestMixedEach combines each way to write with each way to read.
func TestMixedEach(t *testing.T) {
	onlySMC(t, 1)
	for _, blocking := range []bool{true, false} {
		c := couples(t, 1, 0, blocking)[0]
		for wname, w := range writers {
			for rname, r := range readers {
				for _, n := range []int{5, 4096, 70_001} {
					total := int64(min(4*usual, length(150, 1000)*n))
					if err := c.exchange(total, always(w, n), always(r, n)); err != nil {
						t.Fatalf("%s and %s by %d, blocking=%v: %v", wname, rname, n, blocking, err)
					}
				}
			}
		}
	}
}

// TestManyConnections moves data over many connections at once.
func TestManyConnections(t *testing.T) {
	ours.Need(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, n := range []int{10, 50, 250} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			onlySMC(t, uint64(n))
			var group errgroup.Group
			for i, c := range couples(t, n, 0, false) {
				total := megabytes(16, 512) / int64(n)
				group.Go(func() error {
					if err := c.exchange(total, mixed(writers, seed+uint64(i)), mixed(readers, seed+uint64(i))); err != nil {
						return fmt.Errorf("connection %d: %w", i, err)
					}
					return c.finish()
				})
			}
			if err := group.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMain exists because the tests that kill processes start this program again as the victim.
func TestMain(m *testing.M) {
	if role := os.Getenv("SMCKIT_VICTIM"); role != "" {
		os.Exit(victim(role))
	}
	os.Exit(m.Run())
}
