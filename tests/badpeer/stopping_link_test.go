// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// stopsSecond has the second link of a group fail here. That takes our module long, by rdma_test.
func stopsSecond(t *testing.T, g *peer.LinkGroup, takes time.Duration) {
	t.Helper()
	g.Locked(func() { g.RefuseLinks = true })
	offer(t, fmt.Sprintf("delay_stop=%d,fail_qp=%d", takes.Milliseconds(), g.Second.Link))
	time.Sleep(takes / 5)
}

// TestKeysOfStopping opens a connection while our module stops a link. CONFIRM RKEY, which has no key there, comes after DELETE LINK, so
// that the peer does not take the link for one that has failed because of us (RFC 7609, C.7.1).
func TestKeysOfStopping(t *testing.T) {
	s := openLinked(t, 78)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g, first := s.openBoth(ctx, t, peer.Address(78, byte(i+1)), server)
			stopsSecond(t, g, time.Second)
			c, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			keyless := 0
			g.Locked(func() { keyless = g.Keyless })
			if keyless > 0 {
				t.Errorf("%d CONFIRM RKEY without a key on a link that is being stopped, before DELETE LINK", keyless)
			}
			err = peer.InTurn(ctx, func(ctx context.Context) error { return g.LoseLink(ctx, g.Second.QP) },
				func(context.Context) error { return g.DeletedFor(peer.PathLost, false) },
				func(ctx context.Context) error { return c.Exchange(ctx, 500) },
				func(ctx context.Context) error { return first.Exchange(ctx, 500) }, g.UseNewConn, c.Close, first.Close)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
