// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestReceives has peers that acknowledge nothing: our module sends no more messages than they have receives for.
func TestReceives(t *testing.T) {
	n := peer.OpenRoCE(t)
	peer.RoCEGuest.Set(t, "net.smc.autocorking_size", "0")
	peer.RoCEGuest.Set(t, "net.smc.smcr_max_send_wr", "128")
	for i, tc := range []struct {
		name   string
		agrees bool
		recvs  uint32
		most   int
	}{
		{"as stock", false, 0, 16},
		{"of ours, that does not tell", true, 0, 16},
		{"of ours, with 8", true, 3, 8},
		{"of ours, with 64", true, 6, 64},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := peer.NewLinkGroup(t, n, peer.Address(21, byte(i+1)), true)
			g.Immediate, g.Receives = tc.agrees, tc.recvs
			unacknowledged(t, g, 1, tc.most)
		})
	}
}

// TestSendQueue has peers that acknowledge nothing and have receives for everything: the send queue limits how many messages
// our module sends. It has three times as many entries as /proc/net/smc/ctrl_buffer_count, rounded up to a power of two. Data
// takes one entry, and so does the message about it.
func TestSendQueue(t *testing.T) {
	n := peer.OpenRoCE(t)
	peer.RoCEGuest.Set(t, "net.smc.autocorking_size", "0")
	peer.RoCEGuest.Set(t, "net.smc.smcr_max_send_wr", "16") // restores it in the end
	for i, tc := range []struct{ buffers, most int }{{2, 8}, {16, 64}, {32, 128}} {
		t.Run(fmt.Sprint(tc.buffers), func(t *testing.T) {
			guest.Run(t, fmt.Sprintf("echo %d >/proc/net/smc/ctrl_buffer_count", tc.buffers))
			g := peer.NewLinkGroup(t, n, peer.Address(25, byte(i+1)), true)
			g.Immediate, g.Receives = true, 10
			unacknowledged(t, g, 2, tc.most)
		})
	}
}

// unacknowledged has an application write to a peer that acknowledges nothing, and checks that our module sends as much as
// most says. A write with immediate data counts 1, a message weight.
func unacknowledged(t *testing.T, g *peer.LinkGroup, weight, most int) {
	t.Helper()
	const writes = 200
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	c := g.NewConn()
	begin := make(chan struct{})
	c.Use = func(a *guest.App, fd int) { writeBytes(a, fd, begin, writes) }
	if err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish); err != nil {
		t.Fatal(err)
	}
	sent := func() (n int) {
		g.Locked(func() { n = c.CDCCount*weight + g.ImmediateCount })
		return n
	}
	before := sent()
	g.QP.SetManner(peer.Silent)
	close(begin)
	err := g.Until(ctx, "the application's writes", func() bool { return c.App.Wrote.Load() == writes })
	// Packets in flight are sent again in order, so all of them have arrived when two more repetitions have arrived.
	again := g.QP.Again()
	if err == nil {
		err = g.Until(ctx, "what is sent again", func() bool { return g.QP.Again()-again > 2*2*most })
	}
	if err != nil {
		t.Fatal(err)
	}
	// Messages that were acknowledged before, but not signaled, count.
	if got := sent() - before; got > most || got < most*3/4 {
		t.Errorf("%d messages or entries are under way, want %d", got, most)
	}
	g.QP.SetManner(peer.Polite)
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestReceivesStated checks how many receives our module states for a link: a power of two, and a third less than it posts,
// since it posts a used receive again a moment after the peer knows.
func TestReceivesStated(t *testing.T) {
	n := peer.OpenRoCE(t)
	for i, tc := range []struct {
		posted string
		want   uint32
	}{{"48", 32}, {"64", 32}, {"128", 64}, {"2", 2}} {
		t.Run(tc.posted, func(t *testing.T) {
			peer.RoCEGuest.Set(t, "net.smc.smcr_max_recv_wr", tc.posted)
			ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
			defer cancel()
			g := peer.NewLinkGroup(t, n, peer.Address(26, byte(i+1)), false)
			g.Immediate = true
			c, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := uint32(1) << (c.Remote.Vendor >> 4 & 0xf); got != tc.want {
				t.Errorf("%s are posted, %d are stated, want %d", tc.posted, got, tc.want)
			}
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestLinkGroupIDs has the identifiers of link groups wrap around: 0 and identifiers in use are not given to another group,
// and groups are listed in the order of their identifiers.
func TestLinkGroupIDs(t *testing.T) {
	peer.RoCEGuest.Need(t)
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	last := func(id string) {
		t.Helper()
		if err := os.WriteFile("/sys/module/smc/parameters/lgr_id", []byte(id), 0); err != nil {
			t.Fatal(err)
		}
	}
	// The next number after the highest is 0.
	for i, id := range []string{"0x7fffff00", "0xfffffe00", "0xffffff00", "0x7fffff00"} {
		last(id)
		c, err := peer.NewLinkGroup(t, n, peer.Address(27, byte(i+1)), false).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.HangUp()
	}
	out := strings.Fields(guest.Run(t, "smcr linkgroup | awk '/SERV/ { print $1 }'"))
	want := []string{"00000100", "80000000", "80000100", "ffffff00"}
	if !slices.Equal(out, want) {
		t.Errorf("the groups are %v, want %v", out, want)
	}
}

// TestCompletionVectors has two link groups on an adapter with two completion vectors, in a guest with two processors: each
// group uses another one. Only a probe of the function that creates completion queues shows that.
func TestCompletionVectors(t *testing.T) {
	n := peer.OpenRoCE(t)
	const tracing = "/sys/kernel/tracing/"
	if _, err := os.Stat(tracing + "kprobe_events"); err != nil {
		t.Skipf("this kernel has no probes: %v", err)
	}
	// The vector is the fourth argument.
	guest.Run(t, "echo 'p:alloc_cq __ib_alloc_cq vector=%cx:u32' >>"+tracing+"kprobe_events; echo >"+tracing+"trace; echo 1 >"+tracing+"events/kprobes/alloc_cq/enable")
	t.Cleanup(func() {
		guest.Run(t, "echo 0 >"+tracing+"events/kprobes/alloc_cq/enable; echo '-:alloc_cq' >>"+tracing+"kprobe_events")
	})
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	for i := range 2 {
		c, err := peer.NewLinkGroup(t, n, peer.Address(28, byte(i+1)), false).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.HangUp()
	}
	out := strings.Fields(guest.Run(t, "grep -o 'vector=[0-9]*' "+tracing+"trace | sort"))
	if want := []string{"vector=0", "vector=1"}; !slices.Equal(out, want) {
		t.Errorf("the completion queues have %v, want %v", out, want)
	}
}

// writeBytes writes one byte at a time, and waits for the end of the connection.
func writeBytes(a *guest.App, fd int, begin <-chan struct{}, n int) {
	defer close(a.Done)
	defer unix.Close(fd)
	<-begin
	for range n {
		if _, err := unix.Write(fd, []byte{1}); err != nil {
			a.Err = err
			return
		}
		a.Wrote.Add(1)
	}
	if err := unix.SetNonblock(fd, false); err == nil {
		_, a.Err = unix.Read(fd, make([]byte, 1))
	}
}

// TestPortFlap takes the port of our adapter down for a moment: connections go on.
func TestPortFlap(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	c, err := peer.NewLinkGroup(t, n, peer.Address(22, 1), false).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exchange(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	guest.Run(t, "printf 'link set "+peer.Device+" down\nlink set "+peer.Device+" up\n' | ip -batch -")
	guest.Await(t, peer.Patience, func() string {
		if out := guest.Run(t, "smcr device | grep "+peer.RXE); !contains(out, " ACTIVE ") {
			return "the adapter does not come back: " + out
		}
		return ""
	})
	if err := c.Exchange(ctx, 1000); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestTrafficClass checks on the wire that net.smc.smcr_traffic_class is used.
func TestTrafficClass(t *testing.T) {
	n := peer.OpenRoCE(t)
	for i, class := range []byte{0, 0x68} {
		t.Run(fmt.Sprint(class), func(t *testing.T) {
			peer.RoCEGuest.Set(t, "net.smc.smcr_traffic_class", fmt.Sprint(class))
			ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
			defer cancel()
			g := peer.NewLinkGroup(t, n, peer.Address(23, byte(i+1)), false)
			if err := g.UseNewConn(ctx); err != nil {
				t.Fatal(err)
			}
			if got := g.QP.TOS(); got != class {
				t.Errorf("packets have the type of service %#x, want %#x", got, class)
			}
		})
	}
}
