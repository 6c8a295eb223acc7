// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// stopsSecond has the second link of a group fail here. Our module takes at least the given time to stop it, by rdma_test.
func stopsSecond(ctx context.Context, t *testing.T, g *peer.LinkGroup, takes time.Duration) {
	t.Helper()
	g.Locked(func() { g.RefuseLinks = true })
	offer(t, fmt.Sprintf("delay_stop=%d,fail_qp=%d", takes.Milliseconds(), g.Second.Link))
	if err := g.AwaitLinks(ctx, 1); err != nil {
		t.Fatal(err)
	}
}

// TestKeysOfStopping opens a connection while our module stops a link. CONFIRM RKEY, which has no key there, comes after DELETE LINK, so
// that the peer does not take the link for one that has failed because of us (RFC 7609, C.7.1).
func TestKeysOfStopping(t *testing.T) {
	s := openLinked(t, 120)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g, first := s.openBoth(ctx, t, peer.Address(120, byte(i+1)), server)
			stopsSecond(ctx, t, g, time.Second)
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

// fills opens as many connections as a group may have RMBs, and closes all but the first. Then it deletes two RMBs of the peer, so that our
// module has room for new ones.
func fills(ctx context.Context, g *peer.LinkGroup) error {
	var open []*peer.Conn
	for range 254 {
		c, err := g.Open(ctx)
		if err != nil {
			return fmt.Errorf("connection %d: %w", len(open)+2, err)
		}
		open = append(open, c)
	}
	for _, c := range open {
		if err := c.Close(ctx); err != nil {
			return err
		}
	}
	keys := binary.BigEndian.AppendUint32([]byte{2, 0, 0, 0}, open[0].RMB.Rkey)
	_, err := g.Request(ctx, peer.LLC(peer.DeleteRkey, 0, binary.BigEndian.AppendUint32(keys, open[1].RMB.Rkey)...))
	return err
}

// firstContact checks that our server makes another group for a connection, which then is TCP.
func firstContact(ctx context.Context, g *peer.LinkGroup) error {
	c := g.NewConn()
	if err := c.Begin(ctx); err != nil {
		return err
	}
	m, err := c.TCP.Message(ctx, peer.Accept)
	if err == nil && m[7]&8 == 0 {
		err = errors.New("ACCEPT without first contact")
	}
	if err != nil {
		return err
	}
	return c.SendDecline(ctx, 0)
}

// TestRMBsOfStopping has a group with as many RMBs as it may have, all of which wait while our module stops a link. Our server makes
// another group for a new connection, our client waits. Neither declines.
func TestRMBsOfStopping(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.rmem", "16384")
	peer.RoCEGuest.Set(t, "net.smc.wmem", "16384")
	s := openLinked(t, 121)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 4*peer.Timeout)
			defer cancel()
			g, c := s.openBoth(ctx, t, peer.Address(121, byte(i+1)), server)
			if err := fills(ctx, g); err != nil {
				t.Fatal(err)
			}
			stopsSecond(ctx, t, g, 2*time.Second)
			opens := firstContact
			if server {
				opens = func(ctx context.Context, g *peer.LinkGroup) error { return g.UseNewConn(ctx) }
			}
			err := peer.InTurn(ctx, func(ctx context.Context) error { return opens(ctx, g) },
				func(ctx context.Context) error { return g.LoseLink(ctx, g.Second.QP) },
				func(ctx context.Context) error { return c.Exchange(ctx, 500) }, g.UseNewConn, c.Close)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
