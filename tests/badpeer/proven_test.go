// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// resetsProposal has a server reset a connection of ours after the PROPOSAL.
func resetsProposal(ctx context.Context, t *testing.T, c *peer.Conn) {
	t.Helper()
	if err := c.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.TCP.Put(c.TCP.Segment(peer.RST | peer.ACK)); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-c.Connected:
		if !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("connect(): %v", err)
		}
	case <-ctx.Done():
		t.Fatal("connect() does not return")
	}
}

// TestProvenServer has servers reset connections in the handshake. One of them has used SMC before: it starts again, and SMC is possible
// with it. The other one seems to have returned the option without knowing it.
func TestProvenServer(t *testing.T) {
	n := peer.OpenRoCE(t)
	setTime(t, peer.RoCEGuest, 600)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(15, 1), true)
	before, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	self := before.TCP.Self
	before.HangUp()
	again := g.NewConn()
	again.TCP = n.NewTCP(self)
	resetsProposal(ctx, t, again)
	checkRemembered(t, self.Addr(), self.Port(), policy.Connect, nil)
	unknown := peer.NewLinkGroup(t, n, peer.Address(15, 2), true).NewConn()
	resetsProposal(ctx, t, unknown)
	checkRemembered(t, unknown.TCP.Self.Addr(), unknown.TCP.Self.Port(), policy.Connect, &why{reason: netlinksmc.ReasonPeerNoCLC})
}
