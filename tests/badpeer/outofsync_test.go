// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// outOfSync is a handshake in which another host uses a peer's identity, and then sends DECLINE as if it did not know the link
// group. The peer takes no part. With our server, that host waits for the group to be named in ACCEPT. With our client, it
// names the group and a known key in ACCEPT, and declines before it answers CONFIRM RKEY.
func outOfSync(ctx context.Context, g *peer.LinkGroup) error {
	c := g.NewConn()
	defer func() {
		_ = c.TCP.Put(c.TCP.Segment(peer.RST | peer.ACK)) // if it is still there
		g.Remove(c)
	}()
	if !g.Server {
		return sequence(begin, accepted, declines(8))(ctx, c)
	}
	c.Local.Rkey, c.Local.RMB = unused.Rkey, unused.Addr
	return sequence(begin, answer, keyAsked, declines(8))(ctx, c)
}

// unused is an RMB that a server has announced, and that no connection uses.
var unused = &peer.Region{Addr: 99 << 32, Rkey: 0x9999, Bytes: make([]byte, 16384<<peer.SizeCode)}

// groupsOf returns the link groups.
func groupsOf(t *testing.T) []netlinksmc.LinkGroupR {
	t.Helper()
	c, err := netlinksmc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	all, err := c.LinkGroupsR(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// rmbsOf returns the number of link groups, except for old ones, which may end at any time, and the bytes of their RMBs.
func rmbsOf(t *testing.T, old []netlinksmc.LinkGroupR) (groups int, bytes uint64) {
	t.Helper()
	for _, g := range groupsOf(t) {
		if !slices.ContainsFunc(old, func(o netlinksmc.LinkGroupR) bool { return o.ID>>8 == g.ID>>8 }) {
			n, _ := g.RMBAlloc.Get()
			groups, bytes = groups+1, bytes+n
		}
	}
	return groups, bytes
}

// awaitFreed waits until our module has freed all connections but one. It frees a declined connection, and returns its
// buffers, after an RCU grace period. Without waiting, each handshake within a grace period would take an RMB of its own.
func awaitFreed(t *testing.T) {
	t.Helper()
	guest.Await(t, peer.Timeout, func() string {
		if left, err := guest.Objects("smc_conn"); err != nil || left > 1 {
			return fmt.Sprintf("%d connections are not freed, %v", left, err)
		}
		return ""
	})
}

// sockets are the slab caches of TCP's sockets, and of what our module has for each of its own.
var sockets = []string{"TCP", "smc_sock"}

// socketsOf returns how many objects of each of these caches are in use.
func socketsOf(t *testing.T) (all []int) {
	t.Helper()
	for _, cache := range sockets {
		n, err := guest.Objects(cache)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// spareMemory is how many KiB the kernel may keep for reuse, five times what we have seen in a thousand rounds. A thousand sockets of
// TCP take 2.3 MiB, and link groups with their queues far more.
const spareMemory = 1 << 10

// remainder compares what our module has after the first round, except for old groups, with what it has later. The kernel's memory is
// compared when the test ends.
func remainder(t *testing.T, old []netlinksmc.LinkGroupR) (check func()) {
	t.Helper()
	groups, bytes := rmbsOf(t, old)
	had := socketsOf(t)
	guest.MemoryBack(t, spareMemory, peer.Timeout)
	return func() {
		t.Helper()
		if now, after := rmbsOf(t, old); now != groups || after != bytes {
			t.Errorf("%d groups with RMBs of %d bytes became %d with %d", groups, bytes, now, after)
		}
		// The socket of the last round may still be closing.
		guest.Await(t, peer.Timeout, func() string {
			for i, now := range socketsOf(t) {
				if now > had[i] {
					return fmt.Sprintf("%d objects of %s became %d", had[i], sockets[i], now)
				}
			}
			return ""
		})
	}
}

// TestOutOfSync has another host with a peer's identity decline as out of sync, again and again. Our module tests the link. As
// the test succeeds, the peer's connections go on, new ones join the group, and nothing of the others is left: no socket, and no memory.
func TestOutOfSync(t *testing.T) {
	n := peer.OpenRoCE(t)
	rounds := 20
	if peer.RoCEGuest.Full() {
		rounds = 1000
	}
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			old := groupsOf(t)
			g := openVictim(t, n, byte(20+i), server)
			var check func()
			// A link that has just been made is not tested.
			for round := 0; round < rounds || tested(g) == 0; round++ {
				awaitFreed(t)
				// The first round may take an RMB, which all others use again.
				if round == 1 {
					check = remainder(t, old)
				}
				ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
				err := peer.InTurn(ctx, func(ctx context.Context) error { return outOfSync(ctx, g) }, func(ctx context.Context) error { return g.First.Exchange(ctx, 300) })
				cancel()
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
			check()
			g.Locked(func() { g.HoldConfirmRkey = false })
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			if err := g.UseNewConn(ctx); err != nil {
				t.Error(err)
			}
			if err := g.First.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// openVictim makes a group with an open connection, and an RMB that a closed one has left.
func openVictim(t *testing.T, n *peer.RoCENet, last byte, server bool) *peer.LinkGroup {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, last), server)
	var err error
	if g.First, err = g.Open(ctx); err != nil {
		t.Fatal(err)
	}
	if server {
		_, err = g.Request(ctx, peer.ConfirmRkeyOf(unused))
	} else {
		err = g.UseNewConn(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.Locked(func() { g.HoldConfirmRkey = server })
	return g
}

// tested is how often our module has tested the link.
func tested(g *peer.LinkGroup) (n int) {
	g.Locked(func() { n = g.LinkTests })
	return n
}

// TestOutOfSyncSilent is TestOutOfSync with a peer that does not answer the test of the link: the group ends.
func TestOutOfSyncSilent(t *testing.T) {
	n := peer.OpenRoCE(t)
	g := openVictim(t, n, 22, false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	g.Locked(func() { g.Mute = true })
	defer g.First.HangUp()
	for {
		select {
		case <-g.First.App.Done:
			if g.First.App.Err == nil {
				t.Error("the application has got no error")
			}
			return
		default:
		}
		// Once the group is about to end, the outcome of the handshake does not matter.
		if err := outOfSync(ctx, g); ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
