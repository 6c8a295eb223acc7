// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/tool/smcrd"
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
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
	guest.Await(t, peer.Timeout, func() string {
		if now := guest.Meminfo(t, "MemAvailable"); now < had-taken/2 {
			return fmt.Sprintf("%d KiB of %d are still taken, though one of %d sockets is left", had-now, taken, conns)
		}
		return ""
	})
}

// TestBuffersType has buffers of each kind that net.smc.smcr_buf_type can ask for: made of one block of the page allocator, of pages,
// or of pages if there is no such block. A buffer of 1 MiB may be a block, one of 8 MiB cannot: the probe shows whether the module has
// mapped one that is in several pieces. Soft-RoCE registers fewer of these, so the RMB that is used in the end is smaller.
func TestBuffersType(t *testing.T) {
	const order, page = 8, 4096
	n := peer.OpenRoCE(t)
	mapped := probe(t, "ib_dma_virt_map_sg", "pieces=%dx:u32") // the third argument
	allocated := countBlocks(t, order)
	// These restore the settings in the end.
	peer.RoCEGuest.Set(t, "net.smc.smcr_buf_type", "0")
	setBuffers(t, "65536")
	set := func(name, value string) {
		t.Helper()
		if err := os.WriteFile("/proc/sys/net/smc/"+name, []byte(value), 0); err != nil {
			t.Fatal(err)
		}
	}
	for i, tc := range []struct {
		setting, shown string
		blocks, pages  bool
	}{
		{"0", "PHYS", true, false},
		{"1", "VIRT", false, true},
		{"2", "MIXED", true, true},
	} {
		t.Run(tc.shown, func(t *testing.T) {
			set("smcr_buf_type", tc.setting)
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, n, peer.Address(1, byte(14+i)), false)
			before := allocated()
			set("rmem", fmt.Sprint(page<<order))
			set("wmem", fmt.Sprint(page<<order))
			if err := g.UseNewConn(ctx); err != nil {
				t.Fatal(err)
			}
			if blocks := allocated() - before; (blocks > 0) != tc.blocks {
				t.Errorf("%d blocks of %d bytes were allocated", blocks, page<<order)
			}
			before = len(mapped())
			set("rmem", "8388608")
			set("wmem", "8388608")
			if err := g.UseNewConn(ctx); err != nil {
				t.Fatal(err)
			}
			all := mapped()[before:]
			if scattered := slices.ContainsFunc(all, func(m string) bool { return m != "pieces=1" }); scattered != tc.pages || len(all) == 0 {
				t.Errorf("buffers of 8 MiB were to be mapped, and these were: %v", all)
			}
			if out := guest.Run(t, "smcr linkgroup --json"); !strings.Contains(out, `"buffer_type": "`+tc.shown+`"`) {
				t.Errorf("the group is not of type %s: %s", tc.shown, out)
			}
		})
	}
}

// countBlocks has the kernel trace blocks of an order that the page allocator gives, until the end of the test. The function that it
// returns counts them.
func countBlocks(t *testing.T, order int) func() int {
	t.Helper()
	const tracing = "/sys/kernel/tracing/"
	const event = tracing + "events/kmem/mm_page_alloc/"
	guest.Run(t, fmt.Sprintf("echo 'order == %d' >%sfilter; echo 1 >%[2]senable", order, event))
	t.Cleanup(func() { guest.Run(t, "echo 0 >"+event+"enable; echo 0 >"+event+"filter") })
	return func() int {
		trace, err := os.ReadFile(tracing + "trace")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(trace, []byte("mm_page_alloc:"))
	}
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
	var answer smcrd.LinkGroupsR
	if err := jsondoc.Decode([]byte(guest.Run(t, "smcr linkgroup link-show --json")), &answer); err != nil {
		t.Fatal(err)
	}
	for _, g := range answer.LinkGroups {
		sum += int(g.SndbufBytes.Or(0))
	}
	return sum
}
