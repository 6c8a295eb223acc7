// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// TestRoCEv2Version1 has peers of version 1 whose adapters and ours have GIDs of RoCEv2 only. Without net.smc.smcr_v1_rocev2, our
// server declines their connections, and our client neither offers version 1 nor takes part in it.
func TestRoCEv2Version1(t *testing.T) {
	n := peer.OpenRoCE(t)
	for i, server := range []bool{false, true} {
		t.Run(map[bool]string{false: "client", true: "server"}[server], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			peer.RoCEGuest.Set(t, "net.smc.smcr_v1_rocev2", "0")
			refused := peer.NewLinkGroup(t, n, peer.Address(31, byte(2*i+1)), server)
			if err := version1Refused(ctx, refused); err != nil {
				t.Errorf("without the setting: %v", err)
			}
			peer.RoCEGuest.Set(t, "net.smc.smcr_v1_rocev2", "1")
			used := peer.NewLinkGroup(t, n, peer.Address(31, byte(2*i+2)), server)
			used.V1 = true
			if err := used.UseNewConn(ctx); err != nil {
				t.Errorf("with the setting: %v", err)
			}
		})
	}
}

// version1Refused checks that a connection of version 1 falls back. If the peer is the server, our PROPOSAL must be of version 2
// alone, and the peer answers it by an ACCEPT of version 1.
func version1Refused(ctx context.Context, g *peer.LinkGroup) error {
	g.V1 = !g.Server
	c := g.NewConn()
	c.Local.V1 = true
	if !g.Server {
		return peer.InTurn(ctx, c.Begin, func(ctx context.Context) error { return c.RecvDecline(ctx, reasonDevice) })
	}
	return peer.InTurn(ctx, c.Begin, c.Answer, func(ctx context.Context) error { return c.RecvDecline(ctx, reasonMode) })
}
