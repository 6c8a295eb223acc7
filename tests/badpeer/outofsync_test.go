// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"fmt"
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

// rmbsOf returns the number of link groups, and the bytes of their RMBs.
func rmbsOf(t *testing.T) (groups int, bytes uint64) {
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
	for _, g := range all {
		n, _ := g.RMBAlloc.Get()
		bytes += n
	}
	return len(all), bytes
}

// awaitFreed waits until our module has freed all connections but one. It frees a declined connection, and returns its
// buffers, after an RCU grace period. Without waiting, each handshake within a grace period would take an RMB of its own.
func awaitFreed(t *testing.T) {
	t.Helper()
	guest.Await(t, peer.Patience, func() string {
		if left, err := guest.Objects("smc_conn"); err != nil || left > 1 {
			return fmt.Sprintf("%d connections are not freed, %v", left, err)
		}
		return ""
	})
}

// TestOutOfSync has another host with a peer's identity decline as out of sync, again and again. Our module tests the link. As
// the test succeeds, the peer's connections go on, new ones join the group, and nothing of the others is left.
func TestOutOfSync(t *testing.T) {
	n := peer.OpenRoCE(t)
	rounds := 20
	if peer.RoCEGuest.Full() {
		rounds = 1000
	}
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			g := openVictim(t, n, byte(20+i), server)
			groups, before := 0, uint64(0)
			// A link that has just been made is not tested.
			for round := 0; round < rounds || tested(g) == 0; round++ {
				awaitFreed(t)
				// The first round may take an RMB, which all others use again.
				if round == 1 {
					groups, before = rmbsOf(t)
				}
				ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
				err := peer.InTurn(ctx, func(ctx context.Context) error { return outOfSync(ctx, g) }, func(ctx context.Context) error { return g.First.Exchange(ctx, 300) })
				cancel()
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
			if now, after := rmbsOf(t); now != groups || after != before {
				t.Errorf("%d groups with RMBs of %d bytes became %d with %d", groups, before, now, after)
			}
			g.Locked(func() { g.HoldConfirmRkey = false })
			ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
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
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
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
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Patience)
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
