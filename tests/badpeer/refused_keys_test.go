// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// RFC 7609, A.3.5: a CONFIRM RKEY may be refused for good, or for now, because the peer is about to change the links, or has no room.

// keyRepeats is how often our module repeats a CONFIRM RKEY that is refused for now.
const keyRepeats = 3

// keyNotNow and keyRefused are flags of the response to CONFIRM RKEY; keyConfirmed has none.
const (
	keyConfirmed = 0
	keyRefused   = peer.Negative
	keyNotNow    = peer.Negative | peer.RetryLater
)

// answersKeys answers one CONFIRM RKEY of our module after the other, each with its flags. No other may come.
func answersKeys(flags ...byte) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		for i, f := range flags {
			if err := answersKey(func(m []byte) { m[3] |= f })(ctx, c); err != nil {
				return fmt.Errorf("CONFIRM RKEY %d: %w", i+1, err)
			}
		}
		return nil
	}
}

// noKeyAsked checks that our module has sent no other CONFIRM RKEY by now.
func noKeyAsked(ctx context.Context, c *peer.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	m, err := c.Group.Take(ctx, peer.ConfirmRkey, 0)
	if err == nil {
		return fmt.Errorf("another CONFIRM RKEY: %x", m)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// awaitsConfirm waits for CONFIRM of our client, whose key the peer has confirmed.
func awaitsConfirm(ctx context.Context, c *peer.Conn) error { return c.RecvConfirm(ctx) }

// speaks has the peer answer LLC again.
func speaks(_ context.Context, c *peer.Conn) error {
	c.Group.Locked(func() { c.Group.Mute = false })
	return nil
}

// refusedKeys are answers to CONFIRM RKEY of our server, or, for a peer that is the server, of our client.
var refusedKeys = []struct {
	name   string
	server bool
	do     func(ctx context.Context, c *peer.Conn) error
}{
	{name: "refused for now", do: sequence(mute, begin, answersKeys(keyNotNow, keyNotNow, keyNotNow, keyConfirmed), speaks, confirm, usable)},
	{name: "refused for now by a server", server: true, do: sequence(begin, announce, mute, answer, answersKeys(keyNotNow, keyNotNow, keyNotNow, keyConfirmed), speaks, awaitsConfirm, usable)},
	{name: "refused for now without end", do: sequence(mute, begin, answersKeys(bytes.Repeat([]byte{keyNotNow}, 1+keyRepeats)...), falls(reasonBuffer), noKeyAsked)},
	{name: "refused for now, then for good", do: sequence(mute, begin, answersKeys(keyNotNow, keyRefused), falls(reasonBuffer), noKeyAsked)},
	{name: "refused for good by a server", server: true, do: sequence(begin, announce, mute, answer, answersKeys(keyRefused), falls(reasonBuffer), noKeyAsked)},
}

// TestRefusedKeys has peers refuse CONFIRM RKEY. The group's first connection goes on.
func TestRefusedKeys(t *testing.T) {
	s := openEnv(t, 75)
	for i, b := range refusedKeys {
		t.Run(b.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(75, byte(i+1)), b.server)
			var err error
			if g.First, err = g.Open(ctx); err != nil {
				t.Fatal(err)
			}
			if err := peer.InTurn(ctx, func(ctx context.Context) error { return b.do(ctx, g.NewConn()) }, g.First.Close); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRefusedForLink has a server refuse CONFIRM RKEY because it adds a link: our client takes part in that, and then repeats the message
// with the key on the new link.
func TestRefusedForLink(t *testing.T) {
	s := openLinked(t, 76)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(76, 1), true)
	g.Wire = s.wire
	first, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	c := g.NewConn()
	if err := peer.InTurn(ctx, c.Begin, c.AnnounceRMB); err != nil {
		t.Fatal(err)
	}
	g.Locked(func() { g.HoldConfirmRkey = true })
	refuses := func(ctx context.Context) error { return answersKeys(keyNotNow)(ctx, c) }
	if err := peer.InTurn(ctx, c.Answer, refuses); err != nil {
		t.Fatal(err)
	}
	g.Locked(func() { g.HoldConfirmRkey = false })
	exchange := func(ctx context.Context) error { return c.Exchange(ctx, 1000) }
	moves := func(ctx context.Context) error { return c.MoveTo(ctx, g.Other(c.QP)) }
	if err := peer.InTurn(ctx, g.AddSecondLink, c.RecvConfirm, c.AwaitApp, exchange, moves, exchange, c.Close, first.Close); err != nil {
		t.Error(err)
	}
}
