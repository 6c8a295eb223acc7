// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// RFC 7609, 2.2.1: a group has no two links between the same two ports.

// parallelAnswer makes the peer's ADD LINK for a link between the first port of the peer and one of ours.
func parallelAnswer(g *peer.LinkGroup, flags, number byte) []byte {
	addr := g.Addr.As16()
	return peer.With(peer.With(g.AddLinkMessage(flags), 12, addr[:]...), 31, number)
}

// takesParallel has a client answer ADD LINK of our server as parallelAnswer does. Our server deletes the link.
func takesParallel(ctx context.Context, g *peer.LinkGroup) error {
	offer, err := g.Take(ctx, peer.AddLink, 0)
	if err != nil {
		return err
	}
	number := offer[31]
	if g.Second == nil {
		g.NewSecond(number)
	}
	if err := g.Send(ctx, parallelAnswer(g, peer.Response, number)); err != nil {
		return err
	}
	m, err := g.Take(ctx, peer.DeleteLink, 0)
	if err == nil && (m[3]&(peer.AllLinks|peer.Orderly) != 0 || m[4] != number || binary.BigEndian.Uint32(m[5:]) != peer.Violation) {
		err = fmt.Errorf("not DELETE LINK of link %d because of a violation: %x", number, m)
	}
	if err != nil {
		return err
	}
	return g.Send(ctx, peer.LLC(peer.DeleteLink, peer.Response, number))
}

// offersParallel has a server offer such a link. Our client refuses it.
func offersParallel(ctx context.Context, g *peer.LinkGroup) error {
	number := byte(3)
	if g.Second == nil {
		number = 2
		g.NewSecond(number)
	}
	answer, err := g.Request(ctx, parallelAnswer(g, 0, number))
	if err == nil && answer[3]&peer.AllLinks == 0 {
		err = fmt.Errorf("a parallel link is accepted: %x", answer)
	}
	return err
}

// TestParallelLinks has peers, in both roles, make a second link between the only two ports, or a third one between the ports of the
// second link. Connections go on by the links that there are.
func TestParallelLinks(t *testing.T) {
	t.Run("second", func(t *testing.T) {
		s := openEnv(t, 78)
		peer.RoCEGuest.Set(t, "net.smc.smcr_max_links_per_lgr", "2")
		for i, server := range []bool{false, true} {
			t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
				defer cancel()
				g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(78, byte(i+1)), server)
				g.Wire = s.Net
				c, err := g.Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				if err := parallel(ctx, g); err != nil {
					t.Error(err)
				}
				g.Drop(g.Second.QP)
				if err := peer.InTurn(ctx, func(ctx context.Context) error { return c.Exchange(ctx, 5000) }, g.UseNewConn, c.Close); err != nil {
					t.Error(err)
				}
			})
		}
	})
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("third, server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
			defer cancel()
			g, c := openShared(ctx, t, byte(79+i), server)
			if err := g.AddSecondLink(ctx); err != nil {
				t.Fatal(err)
			}
			if !server {
				if err := g.Send(ctx, peer.LLC(peer.RequestAddLink, 0, make([]byte, 56)...)); err != nil {
					t.Fatal(err)
				}
			}
			exchange := func(ctx context.Context) error { return c.Exchange(ctx, 5000) }
			moves := func(ctx context.Context) error { return c.MoveTo(ctx, g.Second.QP) }
			if err := peer.InTurn(ctx, func(ctx context.Context) error { return parallel(ctx, g) }, exchange, moves, exchange, c.Close); err != nil {
				t.Error(err)
			}
		})
	}
}

// parallel has the peer take its part in making a parallel link.
func parallel(ctx context.Context, g *peer.LinkGroup) error {
	if g.Server {
		return offersParallel(ctx, g)
	}
	return takesParallel(ctx, g)
}
