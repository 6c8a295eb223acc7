// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"errors"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestPeersOlder has a client of version 2.0, which has to be told that there will be no second link.
func TestPeersOlder(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 9), false)
	c := g.conn()
	c.us.V20, c.corruptProposal = true, with(peer.AtRelease, 0)
	err := inTurn(ctx, c.begin, c.confirm, c.settle, g.noSecond, func(ctx context.Context) error { return c.exchange(ctx, 1000) }, c.close)
	if err != nil {
		t.Error(err)
	}
}

// TestPeersTested has a peer that says nothing of itself, but answers: its link is tested again and again, and lives.
func TestPeersTested(t *testing.T) {
	guests.Set(t, "net.smc.smcr_testlink_time", "1")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 10), false)
	c, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	err = inTurn(ctx, func(ctx context.Context) error {
		return g.until(ctx, "TEST LINK", func() bool { return g.tests >= 3 })
	}, func(ctx context.Context) error { return c.exchange(ctx, 1000) }, c.close)
	if err != nil {
		t.Error(err)
	}
}

// TestPeersTestedWrong has a peer that answers the test of its link with other data than it was sent. It loses the link.
func TestPeersTestedWrong(t *testing.T) {
	guests.Set(t, "net.smc.smcr_testlink_time", "1")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 24), false)
	g.echo = func(m []byte) { m[19] ^= 1 }
	c, err := g.open(ctx)
	if err == nil {
		err = c.brokenOff(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.hangUp()
}

// TestPeersWellBehaved has peers that do all as they should, in both roles: what the others do wrong is only what they mean to.
func TestPeersWellBehaved(t *testing.T) {
	n := openNetwork(t)
	for i, server := range []bool{false, true} {
		name := "client"
		if server {
			name = "server"
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			g := newGroup(t, n, address(1, byte(i+1)), server)
			first, err := g.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := guest.Run(t, "smcss --state active"); !contains(got, "SMCR", g.addr.String()) {
				t.Errorf("the connection is not SMC-R: %s", got)
			}
			// Around the rings more than once, in both.
			for _, sizes := range [][]int{{1, 1000, 65536, 100_000}, {77}} {
				c, err := g.open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, size := range sizes {
					if err := c.exchange(ctx, size); err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
				}
				if err := c.close(ctx); err != nil {
					t.Fatal(err)
				}
				if err := first.exchange(ctx, 5000); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.close(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestPeersKeepalive has a peer whose TCP answers, but not its link, and an application that wants to know: its connection ends by
// ETIMEDOUT although the links of the namespace are not tested.
func TestPeersKeepalive(t *testing.T) {
	guests.Set(t, "net.smc.smcr_testlink_time", "0")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 13), true)
	c := g.conn()
	c.use = func(a *app, fd int) {
		for option, value := range map[int]int{unix.TCP_KEEPIDLE: 1, unix.TCP_KEEPINTVL: 1, unix.TCP_KEEPCNT: 3} {
			a.err = errors.Join(a.err, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, option, value))
		}
		if err := errors.Join(a.err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)); err != nil {
			a.err = err
			close(a.done)
			return
		}
		a.run(fd)
	}
	err := inTurn(ctx, c.begin, c.confirm, c.settle, func(ctx context.Context) error { return c.exchange(ctx, 1000) },
		func(ctx context.Context) error { return mute(ctx, c) },
		func(ctx context.Context) error { _, err := g.take(ctx, testLink, 0); return err },
		func(ctx context.Context) error { return c.app.wait(ctx) })
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.app.err, unix.ETIMEDOUT) {
		t.Errorf("the application hears of %v", c.app.err)
	}
	c.hangUp()
}
