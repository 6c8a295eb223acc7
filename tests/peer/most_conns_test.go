// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer_test

import (
	"context"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

const reasonMemory = 0x01010000

// TestMostConns has a server add more connections to its group than our client has RMBs for. The last one falls back for lack
// of memory, without the out-of-sync flag, and the others go on.
func TestMostConns(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.rmem", "16384")
	peer.RoCEGuest.Set(t, "net.smc.wmem", "16384")
	n := peer.OpenRoCE(t)
	g := peer.NewLinkGroup(t, n, peer.Address(1, 23), true)
	ctx, cancel := context.WithTimeout(t.Context(), 8*peer.Timeout)
	defer cancel()
	var all []*peer.Conn
	defer func() {
		for _, c := range all {
			c.HangUp()
		}
	}()
	for range 255 {
		c, err := g.Open(ctx)
		if err != nil {
			t.Fatalf("connection %d: %v", len(all), err)
		}
		all = append(all, c)
	}
	c := g.NewConn()
	m, err := refusedByClient(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	const sync = 8
	if peer.Reason(m) != reasonMemory || m[7]&sync != 0 {
		t.Errorf("declined for %#08x with flags %#x, want %#08x and not out of sync", peer.Reason(m), m[7]&0xf, reasonMemory)
	}
	if err := c.UseTCP(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range []*peer.Conn{all[0], all[254]} {
		if err := c.Exchange(ctx, 1000); err != nil {
			t.Error(err)
		}
	}
	if err := all[254].Close(ctx); err != nil {
		t.Fatal(err)
	}
	all = all[:254]
	if err := g.UseNewConn(ctx); err != nil {
		t.Error(err)
	}
}

// refusedByClient is a handshake that our client declines.
func refusedByClient(ctx context.Context, c *peer.Conn) (decline []byte, err error) {
	if err := peer.InTurn(ctx, c.Begin, c.AnnounceRMB, c.Answer); err != nil {
		return nil, err
	}
	return c.TCP.Message(ctx, peer.Decline)
}
