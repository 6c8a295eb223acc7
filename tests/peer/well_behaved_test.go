// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// TestVersion20 has a client of version 2.0, to which our server announces by ADD LINK that there will be no second link.
func TestVersion20(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 9), false)
	c := g.NewConn()
	c.Local.V20, c.CorruptProposal = true, func(msg []byte) []byte { return peer.With(msg, peer.AtRelease, 0) }
	err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish, g.RefuseSecondLink, func(ctx context.Context) error { return c.Exchange(ctx, 1000) }, c.Close)
	if err != nil {
		t.Error(err)
	}
}

// TestLinkTested has a peer that sends nothing by itself, but answers: its link is tested again and again, and stays.
func TestLinkTested(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 10), false)
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = peer.InTurn(ctx, func(ctx context.Context) error {
		return g.Until(ctx, "TEST LINK", func() bool { return g.LinkTests >= 3 })
	}, func(ctx context.Context) error { return c.Exchange(ctx, 1000) }, c.Close)
	if err != nil {
		t.Error(err)
	}
}

// TestWellBehaved has well-behaved peers in both roles. It shows that bad peers fail by the rules that they break, and no
// others.
func TestWellBehaved(t *testing.T) {
	n := peer.OpenRoCE(t)
	for i, server := range []bool{false, true} {
		name := "client"
		if server {
			name = "server"
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, n, peer.Address(1, byte(i+1)), server)
			first, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := guest.Run(t, "smcss --state active"); !contains(got, "SMCR", g.Addr.String()) {
				t.Errorf("the connection is not SMC-R: %s", got)
			}
			// Around the rings more than once, in both.
			for _, sizes := range [][]int{{1, 1000, 65536, 100_000}, {77}} {
				c, err := g.Open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, size := range sizes {
					if err := c.Exchange(ctx, size); err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
				}
				if err := c.Close(ctx); err != nil {
					t.Fatal(err)
				}
				if err := first.Exchange(ctx, 5000); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.Close(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// contains reports whether a line has all of these words.
func contains(text string, words ...string) bool {
	for line := range strings.Lines(text) {
		found := true
		for _, w := range words {
			found = found && strings.Contains(line, w)
		}
		if found {
			return true
		}
	}
	return false
}
