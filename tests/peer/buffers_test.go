// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestBuffersScarce has connections, one after the other, ask for larger buffers than the kernel has in one piece: they use
// the smaller buffers of the connections before.
func TestBuffersScarce(t *testing.T) {
	const conns, together = 12, 4
	// Pieces of 4 MiB are the largest that the kernel has.
	setBuffers(t, "16777216")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 11), false)
	rmbs := map[uint64]bool{}
	for range conns {
		c, err := g.Open(ctx)
		if err == nil {
			err = c.Exchange(ctx, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.RingSize > 4<<20 {
			t.Fatalf("an RMB of %d bytes: nothing is scarce here", c.RingSize)
		}
		rmbs[c.Remote.RMB] = true
		if err := c.Close(ctx); err != nil {
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

// TestBuffersDeclined has a client decline one connection after the other, beside a quiet one that has just been answered:
// each uses the buffers of the one before.
func TestBuffersDeclined(t *testing.T) {
	const rounds, conns, together = 4, 10, 4
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 12), false)
	quiet, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	// Some of the answers are the last that the adapter has said it has sent, and some are not.
	for range rounds {
		if err := quiet.Exchange(ctx, 10); err != nil {
			t.Fatal(err)
		}
		for range conns {
			c := g.NewConn()
			if err := peer.InTurn(ctx, c.Begin, c.RecvAccept, func(ctx context.Context) error { return c.SendDecline(ctx, 0) }); err != nil {
				t.Fatal(err)
			}
		}
	}
	// The first connections of a group have large ones.
	if bytes := ringBytes(t); bytes == 0 || bytes > together*256<<10 {
		t.Errorf("%d connections that were declined have left rings of %d bytes", rounds*conns, bytes)
	}
	if err := quiet.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestBuffersHeld has a group end while one program keeps its socket open: the buffers of the other connections are freed at
// once.
func TestBuffersHeld(t *testing.T) {
	const conns, most = 30, 2 << 10 // KiB of each: 1 MiB each way
	setBuffers(t, "1048576")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 13), true)
	had := guest.Meminfo(t, "MemAvailable")
	held := make(chan struct{})
	defer close(held)
	var all []*peer.Conn
	for i := range conns {
		c := g.NewConn()
		if i == 0 {
			c.Use = func(a *guest.App, fd int) {
				defer close(a.Done)
				<-held
				unix.Close(fd)
			}
		}
		if err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish); err != nil {
			t.Fatal(err)
		}
		defer c.HangUp()
		all = append(all, c)
	}
	taken := had - guest.Meminfo(t, "MemAvailable")
	if taken < conns*most/2 {
		t.Fatalf("%d connections have taken %d KiB: no buffers", conns, taken)
	}
	// It has read what was not sent yet.
	m := all[1].NextCDC()
	m.Cons = peer.CursorAt(all[1].Cons+1, len(all[1].RMB.Bytes))
	if err := g.QP.Send(m.Marshal()); err != nil {
		t.Fatal(err)
	}
	for _, c := range all[1:] {
		if err := c.App.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	guest.Await(t, peer.Patience, func() string {
		if now := guest.Meminfo(t, "MemAvailable"); now < had-taken/2 {
			return fmt.Sprintf("%d KiB of %d are still taken, though one of %d sockets is left", had-now, taken, conns)
		}
		return ""
	})
}

// setBuffers sets the size of RMBs and rings.
func setBuffers(t *testing.T, size string) {
	t.Helper()
	peer.RoCEGuest.Set(t, "net.smc.rmem", size)
	peer.RoCEGuest.Set(t, "net.smc.wmem", size)
}

// ringBytes is the size of the send buffers of all groups.
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
