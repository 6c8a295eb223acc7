// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// TestIdleServers has peers leave link groups of our server without connections. A group ends after the time that
// net.smc.lgr_idle_time had when its last connection closed: one after a second, the other one not yet.
func TestIdleServers(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	peer.RoCEGuest.Set(t, "net.smc.lgr_idle_time", "600")
	stays := peer.NewLinkGroup(t, n, peer.Address(30, 1), false)
	if err := stays.UseNewConn(ctx); err != nil {
		t.Fatal(err)
	}
	peer.RoCEGuest.Set(t, "net.smc.lgr_idle_time", "1")
	endsAfter(ctx, t, peer.NewLinkGroup(t, n, peer.Address(30, 2), false), time.Second)
	if err := stays.UseNewConn(ctx); err != nil {
		t.Errorf("the group that became idle when the time was 600 seconds: %v", err)
	}
}

// TestIdleClients has our client without connections in a link group. It keeps the group for 10 seconds more than a server would.
func TestIdleClients(t *testing.T) {
	n := peer.OpenRoCE(t)
	peer.RoCEGuest.Set(t, "net.smc.lgr_idle_time", "1")
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	endsAfter(ctx, t, peer.NewLinkGroup(t, n, peer.Address(30, 3), true), 11*time.Second)
}

// endsAfter uses a group for a connection, and checks that our module ends the group a time later, and not before.
func endsAfter(ctx context.Context, t *testing.T, g *peer.LinkGroup, idle time.Duration) {
	t.Helper()
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if err := g.Until(ctx, "the end of the group", func() bool { return g.Gone }); err != nil {
		t.Fatal(err)
	}
	// The kernel's clock ticks every few milliseconds.
	if took := g.GoneAt.Sub(begin); took < idle-10*time.Millisecond {
		t.Errorf("the group has ended after %v, want %v", took, idle)
	}
}
