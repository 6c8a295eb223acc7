// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestPeersWellBehavedScarce has connections, one after the other, ask for more than can be had in one piece: what the first ones got,
// the next ones take, though it is not what they ask for.
func TestPeersWellBehavedScarce(t *testing.T) {
	const conns, together = 12, 4
	// Pieces of 4 MiB are the largest that the kernel has.
	setBuffers(t, "16777216")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g := newGroup(t, n, address(1, 11), false)
	rmbs := map[uint64]bool{}
	for range conns {
		c, err := g.open(ctx)
		if err == nil {
			err = c.exchange(ctx, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.size > 4<<20 {
			t.Fatalf("an RMB of %d bytes: nothing is scarce here", c.size)
		}
		rmbs[c.them.RMB] = true
		if err := c.close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// One may not be back yet when the next connection comes; never all.
	if len(rmbs) > together {
		t.Errorf("%d connections after each other had %d RMBs", conns, len(rmbs))
	}
	if bytes := ringBytes(t); bytes == 0 || bytes > together*4<<20 {
		t.Errorf("%d connections after each other have left rings of %d bytes", conns, bytes)
	}
}

// TestPeersWellBehavedDeclines has a client decline one connection after the other, while another one, which has just been answered, is
// quiet: each takes the buffers that the one before had.
func TestPeersWellBehavedDeclines(t *testing.T) {
	const rounds, conns, together = 4, 10, 4
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g := newGroup(t, n, address(1, 12), false)
	quiet, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Some of the answers are the last that the adapter has said it has sent, and some are not.
	for range rounds {
		if err := quiet.exchange(ctx, 10); err != nil {
			t.Fatal(err)
		}
		for range conns {
			c := g.conn()
			if err := inTurn(ctx, c.begin, c.accepted, func(ctx context.Context) error { return declines(0)(ctx, c) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The first connections of a group have large ones.
	if bytes := ringBytes(t); bytes == 0 || bytes > together*256<<10 {
		t.Errorf("%d connections that were declined have left rings of %d bytes", rounds*conns, bytes)
	}
	if err := quiet.close(ctx); err != nil {
		t.Error(err)
	}
}

// TestPeersWellBehavedHeld has a group end while one program keeps its socket: the buffers of the others are free at once.
func TestPeersWellBehavedHeld(t *testing.T) {
	const conns, most = 30, 2 << 10 // KiB of each: 1 MiB each way
	setBuffers(t, "1048576")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g := newGroup(t, n, address(1, 13), true)
	had := guest.Meminfo(t, "MemAvailable")
	held := make(chan struct{})
	defer close(held)
	var all []*conn
	for i := range conns {
		c := g.conn()
		if i == 0 {
			c.use = func(a *app, fd int) {
				defer close(a.done)
				<-held
				unix.Close(fd)
			}
		}
		if err := inTurn(ctx, c.begin, c.confirm, c.settle); err != nil {
			t.Fatal(err)
		}
		defer c.hangUp()
		all = append(all, c)
	}
	taken := had - guest.Meminfo(t, "MemAvailable")
	if taken < conns*most/2 {
		t.Fatalf("%d connections have taken %d KiB: no buffers", conns, taken)
	}
	// It has read what was not sent yet.
	m := all[1].next()
	m.cons = at(all[1].cons+1, len(all[1].rmb.Bytes))
	if err := g.qp.Send(m.marshal()); err != nil {
		t.Fatal(err)
	}
	for _, c := range all[1:] {
		if err := c.app.wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	guest.Await(t, patience, func() string {
		if now := guest.Meminfo(t, "MemAvailable"); now < had-taken/2 {
			return fmt.Sprintf("%d KiB of %d are still taken, though one of %d sockets is left", had-now, taken, conns)
		}
		return ""
	})
}

// setBuffers has connections have RMBs and rings of so many bytes.
func setBuffers(t *testing.T, size string) {
	t.Helper()
	guests.Set(t, "net.smc.rmem", size)
	guests.Set(t, "net.smc.wmem", size)
}

// ringBytes is how much all groups have to send from.
func ringBytes(t *testing.T) (sum int) {
	t.Helper()
	var answer struct {
		Linkgroups []struct {
			Sndbuf int `json:"sndbuf_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(guest.Run(t, "smcr linkgroup link-show --json")), &answer); err != nil {
		t.Fatal(err)
	}
	for _, g := range answer.Linkgroups {
		sum += g.Sndbuf
	}
	return sum
}
