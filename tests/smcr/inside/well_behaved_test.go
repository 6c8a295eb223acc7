// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside is what tests/smcr runs in a guest that has our module, with a peer in user space. Anywhere else its tests are
// skipped.
package inside

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestPeersOlder has a client of version 2.0, which has to be told that there will be no second link.
func TestPeersOlder(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 9), false)
	c := g.NewConn()
	c.Local.V20, c.CorruptProposal = true, with(peer.AtRelease, 0)
	err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish, g.RefuseSecondLink, func(ctx context.Context) error { return c.Exchange(ctx, 1000) }, c.Close)
	if err != nil {
		t.Error(err)
	}
}

// TestPeersTested has a peer that says nothing of itself, but answers: its link is tested again and again, and lives.
func TestPeersTested(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
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

// TestPeersTestedWrong has a peer that answers the test of its link with other data than it was sent. It loses the link.
func TestPeersTestedWrong(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 24), false)
	g.ChangeTestLink = func(m []byte) { m[19] ^= 1 }
	c, err := g.Open(ctx)
	if err == nil {
		err = c.AwaitError(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.HangUp()
}

// TestPeersWellBehaved has peers that do all as they should, in both roles: what the others do wrong is only what they mean to.
func TestPeersWellBehaved(t *testing.T) {
	n := peer.OpenRoCE(t)
	for i, server := range []bool{false, true} {
		name := "client"
		if server {
			name = "server"
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Patience)
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

// TestPeersKeepalive has a peer whose TCP answers, but not its link, and an application that wants to know: its connection ends by
// ETIMEDOUT although the links of the namespace are not tested.
func TestPeersKeepalive(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "0")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Patience)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 13), true)
	c := g.NewConn()
	c.Use = func(a *guest.App, fd int) {
		for option, value := range map[int]int{unix.TCP_KEEPIDLE: 1, unix.TCP_KEEPINTVL: 1, unix.TCP_KEEPCNT: 3} {
			a.Err = errors.Join(a.Err, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, value))
		}
		if err := errors.Join(a.Err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)); err != nil {
			a.Err = err
			close(a.Done)
			return
		}
		a.Run(fd)
	}
	err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish, func(ctx context.Context) error { return c.Exchange(ctx, 1000) },
		func(ctx context.Context) error { return mute(ctx, c) },
		func(ctx context.Context) error { _, err := g.Take(ctx, peer.TestLink, 0); return err },
		func(ctx context.Context) error { return c.App.Wait(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.App.Err, unix.ETIMEDOUT) {
		t.Errorf("the application hears of %v", c.App.Err)
	}
	c.HangUp()
}

// contains is whether a line has all of some words.
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
