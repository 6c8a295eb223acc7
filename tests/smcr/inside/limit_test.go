// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

const reasonMemory = 0x01010000

// TestPeersLimit has a server name its group to our client more often than the client has RMBs for. The server says how many
// connections a group has: the one too many is TCP, for want of memory, and the others go on.
func TestPeersLimit(t *testing.T) {
	guests.Set(t, "net.smc.rmem", "16384")
	guests.Set(t, "net.smc.wmem", "16384")
	n := openNetwork(t)
	g := newGroup(t, n, address(1, 23), true)
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	defer cancel()
	var all []*conn
	defer func() {
		for _, c := range all {
			c.hangUp()
		}
	}()
	for range 255 {
		c, err := g.open(ctx)
		if err != nil {
			t.Fatalf("connection %d: %v", len(all), err)
		}
		all = append(all, c)
	}
	c := g.conn()
	m, err := c.refused(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const sync = 8
	if peer.Reason(m) != reasonMemory || m[7]&sync != 0 {
		t.Errorf("declined for %#08x with flags %#x, want %#08x and not out of sync", peer.Reason(m), m[7]&0xf, reasonMemory)
	}
	if err := c.byTCP(ctx); err != nil {
		t.Error(err)
	}
	for _, c := range []*conn{all[0], all[254]} {
		if err := c.exchange(ctx, 1000); err != nil {
			t.Error(err)
		}
	}
	if err := all[254].close(ctx); err != nil {
		t.Fatal(err)
	}
	all = all[:254]
	if err := g.fresh(ctx); err != nil {
		t.Error(err)
	}
}

// refused is a handshake that our client ends by a DECLINE.
func (c *conn) refused(ctx context.Context) (decline []byte, err error) {
	if err := inTurn(ctx, c.begin, c.announce, c.answer); err != nil {
		return nil, err
	}
	return c.tcp.Message(ctx, peer.Decline)
}
