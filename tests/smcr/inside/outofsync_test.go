// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"fmt"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// outOfSync is a handshake in which somebody gives a peer's identity and then declines, as if the group of that were not known.
// The peer itself has no part in it. Our module's server names its group in ACCEPT; its client is named the group in an ACCEPT with
// a key that it knows, and declines before the client has the answer to its CONFIRM RKEY.
func (g *group) outOfSync(ctx context.Context) error {
	c := g.conn()
	defer func() {
		_ = c.tcp.Put(c.tcp.Segment(peer.RST | peer.ACK)) // if it is still there
		g.set(func() { delete(g.conns, c.us.Token) })
	}()
	if !g.server {
		return sequence(begin, accepted, declines(8))(ctx, c)
	}
	c.us.Rkey, c.us.RMB = unused.Rkey, unused.Addr
	return sequence(begin, answer, keyAsked, declines(8))(ctx, c)
}

// unused is an RMB that a server has told of, and that no connection has.
var unused = &peer.Region{Addr: 99 << 32, Rkey: 0x9999, Bytes: make([]byte, 16384<<sizeCode)}

// rmbsOf returns how many groups our module has, and the bytes of their RMBs.
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

// awaitFreed waits until our module has freed all connections but one, and with them has got their buffers back. It frees a
// connection that was declined after an RCU grace period; a handshake that begins earlier gets an RMB of its own. So without
// waiting, the RMBs of a group are as many as the handshakes that fit into a grace period.
func awaitFreed(t *testing.T) {
	t.Helper()
	guest.Await(t, patience, func() string {
		if left, err := guest.Objects("smc_conn"); err != nil || left > 1 {
			return fmt.Sprintf("%d connections are not freed, %v", left, err)
		}
		return ""
	})
}

// TestPeersOutOfSync has somebody who has a peer's identity decline as out of sync, again and again. The link is tested, and as it
// works, the peer's connections go on, new ones join the group, and nothing is left of the others.
func TestPeersOutOfSync(t *testing.T) {
	n := openNetwork(t)
	rounds := 20
	if guests.Full() {
		rounds = 1000
	}
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			g := openVictim(t, n, byte(20+i), server)
			groups, before := 0, uint64(0)
			// A link that has just been made is not tested.
			for round := 0; round < rounds || g.tested() == 0; round++ {
				awaitFreed(t)
				// The first round may take an RMB, which all others use again.
				if round == 1 {
					groups, before = rmbsOf(t)
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				err := inTurn(ctx, g.outOfSync, func(ctx context.Context) error { return g.first.exchange(ctx, 300) })
				cancel()
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
			}
			if now, after := rmbsOf(t); now != groups || after != before {
				t.Errorf("%d groups with RMBs of %d bytes became %d with %d", groups, before, now, after)
			}
			g.set(func() { g.holdKeys = false })
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := g.fresh(ctx); err != nil {
				t.Error(err)
			}
			if err := g.first.close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// openVictim makes a group with a connection, and an RMB that is left of another one.
func openVictim(t *testing.T, n *network, last byte, server bool) *group {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, last), server)
	var err error
	if g.first, err = g.open(ctx); err != nil {
		t.Fatal(err)
	}
	if server {
		_, err = g.asks(ctx, confirmRkeyMessage(unused))
	} else {
		err = g.fresh(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	g.set(func() { g.holdKeys = server })
	return g
}

func (g *group) set(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

// tested is how often our module has tested the link.
func (g *group) tested() (n int) {
	g.set(func() { n = g.tests })
	return n
}

// TestPeersOutOfSyncSilent does so where the peer does not answer when the link is tested: then the group ends.
func TestPeersOutOfSyncSilent(t *testing.T) {
	n := openNetwork(t)
	g := openVictim(t, n, 22, false)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g.set(func() { g.mute = true })
	defer g.first.hangUp()
	for {
		select {
		case <-g.first.app.done:
			if g.first.app.err == nil {
				t.Error("the application has heard of no error")
			}
			return
		default:
		}
		// Once the group is about to end, what becomes of a newcomer is of no matter.
		if err := g.outOfSync(ctx); ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
