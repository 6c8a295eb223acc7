// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
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
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
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

// TestReceivesPosted checks how many receives our module posts for a link: as many as net.smc.smcr_max_recv_wr says. And how many
// it states: a power of two, and a third less than it posts, since it posts a used receive again a moment after the peer knows.
func TestReceivesPosted(t *testing.T) {
	n := peer.OpenRoCE(t)
	probed := probe(t, "rxe_post_recv", "qp=%di:x64") // the first argument
	for i, tc := range []struct {
		posted int
		stated uint32
	}{{48, 32}, {64, 32}, {128, 64}, {2, 2}} {
		t.Run(fmt.Sprint(tc.posted), func(t *testing.T) {
			peer.RoCEGuest.Set(t, "net.smc.smcr_max_recv_wr", fmt.Sprint(tc.posted))
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			before := len(probed())
			g := peer.NewLinkGroup(t, n, peer.Address(26, byte(i+1)), false)
			g.Immediate = true
			c, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := uint32(1) << (c.Remote.Vendor >> 4 & 0xf); got != tc.stated {
				t.Errorf("%d are posted, %d are stated, want %d", tc.posted, got, tc.stated)
			}
			byQP := map[string]int{}
			for _, qp := range probed()[before:] {
				byQP[qp]++
			}
			// Each message that arrives while the link is set up is followed by another receive. A link of before that ends posts
			// one at the end of its queue.
			const messages = 4
			most := slices.Max(slices.Collect(maps.Values(byQP)))
			if most < tc.posted || most > tc.posted+messages {
				t.Errorf("%v receives were posted, by queue pair; want %d for one", byQP, tc.posted)
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
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
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
	probed := probe(t, "__ib_alloc_cq", "vector=%cx:u32") // the fourth argument
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	for i := range 2 {
		c, err := peer.NewLinkGroup(t, n, peer.Address(28, byte(i+1)), false).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer c.HangUp()
	}
	out := probed()
	slices.Sort(out)
	if want := []string{"vector=0", "vector=1"}; !slices.Equal(out, want) {
		t.Errorf("the completion queues have %v, want %v", out, want)
	}
}

// probe has the kernel trace the calls of a function with one of its arguments, until the end of the test. The function that it
// returns returns that argument of each call, such as "vector=0", in the order of the calls.
func probe(t *testing.T, function, argument string) func() []string {
	t.Helper()
	const tracing = "/sys/kernel/tracing/"
	if _, err := os.Stat(tracing + "kprobe_events"); err != nil {
		t.Skipf("this kernel has no probes: %v", err)
	}
	name := strings.TrimLeft(function, "_")
	guest.Run(t, fmt.Sprintf("cd %s; echo 'p:%s %s %s' >>kprobe_events; echo >trace; echo 1 >events/kprobes/%[2]s/enable", tracing, name, function, argument))
	t.Cleanup(func() {
		guest.Run(t, fmt.Sprintf("cd %s; echo 0 >events/kprobes/%s/enable; echo '-:%[2]s' >>kprobe_events", tracing, name))
	})
	argument, _, _ = strings.Cut(argument, "=")
	value := regexp.MustCompile(argument + "=[0-9a-fx]+")
	return func() []string {
		trace, err := os.ReadFile(tracing + "trace")
		if err != nil {
			t.Fatal(err)
		}
		return value.FindAllString(string(trace), -1)
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
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	c, err := peer.NewLinkGroup(t, n, peer.Address(22, 1), false).Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Exchange(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	guest.Run(t, "printf 'link set "+peer.Device+" down\nlink set "+peer.Device+" up\n' | ip -batch -")
	guest.Await(t, peer.Timeout, func() string {
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
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
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
