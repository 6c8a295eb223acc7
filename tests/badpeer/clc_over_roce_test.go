// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// clcCase is a handshake in which a peer sends wrong values about itself.
type clcCase struct {
	name           string
	server         bool // the peer's role: the values are in ACCEPT, or else in CONFIRM or PROPOSAL
	further        bool // the connection is not the first of its group
	proposal, clc  func(msg []byte) []byte
	change         func(us *peer.EndR)
	declined       []uint32 // for one of these reasons
	lost           bool     // the connection is made, and breaks when it is used
	broken         bool     // its TCP connection breaks, as it is too late for a DECLINE
	skip           string
	withoutConfirm bool // the DECLINE comes instead of our module's own message
}

// with changes bytes of a message.
func with(at int, b ...byte) func(msg []byte) []byte {
	return func(msg []byte) []byte { return peer.With(msg, at, b...) }
}

// proposedGID changes the address of the peer's adapter.
func proposedGID(addr string) func(msg []byte) []byte {
	a := netip.MustParseAddr(addr).As16()
	return with(peer.AtRoCEGID, a[:]...)
}

func because(reasons ...uint32) []uint32 { return reasons }

// introducedByClients are PROPOSAL and CONFIRM messages of clients.
var introducedByClients = []clcCase{
	{name: "unknown address", proposal: proposedGID("203.0.113.1"), declined: because(reasonDevice), withoutConfirm: true},
	{name: "address of nothing", proposal: proposedGID("0.0.0.0"), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "loopback's address", proposal: proposedGID("127.0.0.1"), declined: because(reasonDevice, reasonTimeout, reasonLink, reasonReady)},
	{name: "our own address", proposal: proposedGID("10.97.0.1"), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "address of all", proposal: proposedGID("10.97.255.255"), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "address of many", proposal: proposedGID("224.0.0.1"), declined: because(reasonDevice, reasonTimeout, reasonLink, reasonReady)},
	{name: "another peer's address", proposal: proposedGID("10.97.8.250"), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "release 15", proposal: with(peer.AtRelease, 0xf0)},
	{name: "no connections", proposal: with(peer.AtMaxConns, 0), declined: because(reasonConns), withoutConfirm: true},
	{name: "15 connections", proposal: with(peer.AtMaxConns, 15), declined: because(reasonConns), withoutConfirm: true},
	{name: "no links", proposal: with(peer.AtMaxLinks, 0), declined: because(reasonLinks), withoutConfirm: true},
	{name: "255 links", proposal: with(peer.AtMaxLinks, 255)},
	{name: "MTU 0", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4), declined: because(reasonReady)},
	{name: "MTU 6", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4|6), declined: because(reasonReady)},
	{name: "MTU 15", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4|15), declined: because(reasonReady)},
	{name: "MTU 5", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4|5)},
	{name: "size 15", change: func(us *peer.EndR) { us.Size = 15 }},
	{name: "queue pair 0", clc: with(peer.AtRQPN, 0, 0, 0), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "highest queue pair", clc: with(peer.AtRQPN, 255, 255, 255), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "another PSN", clc: with(61, 0, 0, 0), declined: because(reasonTimeout, reasonLink)},
	{name: "element 0", clc: with(peer.AtRElement, 0), lost: true},
	{name: "element 255", clc: with(peer.AtRElement, 255), lost: true},
	{name: "RMB somewhere else", clc: with(peer.AtRAddr, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff), lost: true},
	{name: "key 0", clc: with(peer.AtRRkey, 0, 0, 0, 0), lost: true},
	{name: "token 0", change: func(us *peer.EndR) { us.Token = 0 }},
	{name: "first contact without saying so", clc: with(7, 0x20), declined: because(reasonRelease)},
	{name: "first contact again", further: true, change: func(us *peer.EndR) { us.First = true }, declined: because(reasonRelease)},
	{name: "release 15 in CONFIRM", clc: with(peer.AtRRelease, 0x2f), declined: because(reasonRelease)},
	{name: "no connections in CONFIRM", clc: with(peer.AtRMaxConns, 0), declined: because(reasonConns)},
	{name: "other links in CONFIRM", clc: with(peer.AtRMaxLinks, 2), declined: because(reasonLinks)},
	{name: "address behind a tunnel", proposal: proposedGID(tunnelled), declined: because(reasonRoute), withoutConfirm: true},
	{name: "key of a connection of before", further: true, clc: with(peer.AtRRkey, 0, 0, 0x10, 1), broken: true},
	{name: "key that it has not announced", further: true, clc: with(peer.AtRRkey, 0, 0, 0x20, 1), broken: true},
	{name: "RMB that it has not announced", further: true, clc: with(peer.AtRAddr, 0, 0, 0, 77), broken: true},
	{name: "another queue pair than before", further: true, clc: with(peer.AtRQPN, 7, 7, 7), broken: true},
	{name: "another GID than before", further: true, clc: gidIn("10.97.8.250"), broken: true},
	{name: "another MAC than before", further: true, clc: with(atRMAC, 2, 7, 7, 7, 7, 7), broken: true},
}

// introducedByServers are ACCEPT messages of servers.
var introducedByServers = []clcCase{
	{name: "unknown address", clc: gidIn("203.0.113.1"), declined: because(reasonTimeout, reasonLink)},
	{name: "our own address", clc: gidIn("10.97.0.1"), declined: because(reasonTimeout, reasonLink, reasonReady)},
	{name: "indirect", clc: with(peer.AtRFCE, 0), declined: because(0x030f0000), withoutConfirm: true},
	{name: "MTU 0", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4), declined: because(reasonReady), withoutConfirm: true},
	{name: "MTU 15", clc: with(peer.AtRSizeMTU, peer.SizeCode<<4|15), declined: because(reasonReady), withoutConfirm: true},
	{name: "size 15", change: func(us *peer.EndR) { us.Size = 15 }},
	{name: "another PSN", clc: with(61, 0, 0, 0), declined: because(reasonTimeout, reasonLink)},
	{name: "element 0", clc: with(peer.AtRElement, 0), lost: true},
	{name: "element 255", clc: with(peer.AtRElement, 255), lost: true},
	{name: "key 0", clc: with(peer.AtRRkey, 0, 0, 0, 0), lost: true},
	{name: "token 0", change: func(us *peer.EndR) { us.Token = 0 }},
	{name: "a group that is not", change: func(us *peer.EndR) { us.First = false }, declined: because(reasonSync), withoutConfirm: true},
	{name: "a queue pair that is not", further: true, clc: with(peer.AtRQPN, 7, 7, 7), declined: because(reasonSync), withoutConfirm: true},
	{name: "first contact again", further: true, change: func(us *peer.EndR) { us.First = true }, declined: because(reasonTimeout, reasonLink)},
	{name: "key that it has not announced", further: true, clc: with(peer.AtRRkey, 0, 0, 0x20, 1), declined: because(reasonToken), withoutConfirm: true},
	{name: "release 15", clc: with(peer.AtRRelease, 0x2f), declined: because(reasonRelease), withoutConfirm: true},
	{name: "release 0", clc: with(peer.AtRRelease, 0x20)},
	{name: "no connections", clc: with(peer.AtRMaxConns, 0), declined: because(reasonConns), withoutConfirm: true},
	{name: "no links", clc: with(peer.AtRMaxLinks, 0), declined: because(reasonLinks), withoutConfirm: true},
	{name: "255 links", clc: with(peer.AtRMaxLinks, 255), declined: because(reasonLinks), withoutConfirm: true},
}

// tunnelled is an address that is reached through an interface without MAC addresses.
const tunnelled = "198.51.100.1"

// atRMAC is the offset of the MAC in ACCEPT and CONFIRM.
const atRMAC = 32

func gidIn(addr string) func(msg []byte) []byte {
	a := netip.MustParseAddr(addr).As16()
	return with(16, a[:]...)
}

// run runs the handshake and checks its outcome.
func (b *clcCase) run(ctx context.Context, g *peer.LinkGroup) error {
	if b.further {
		before, err := g.Open(ctx)
		if err != nil {
			return fmt.Errorf("before: %w", err)
		}
		defer before.HangUp()
	}
	c := g.NewConn()
	c.Corrupt, c.CorruptProposal = b.clc, b.proposal
	if b.change != nil {
		b.change(&c.Local)
		g.Add(c)
	}
	if err := c.Begin(ctx); err != nil {
		return err
	}
	if err := b.introduce(ctx, c); err != nil {
		if b.broken && errors.Is(err, peer.ErrReset) {
			return nil
		}
		return err
	}
	switch {
	case b.declined != nil:
		return c.RecvDecline(ctx, b.declined...)
	case b.broken:
		return c.TCP.Ended(ctx)
	}
	if err := c.Finish(ctx); err != nil {
		return err
	}
	return b.use(ctx, c)
}

// introduce runs the handshake from ACCEPT on.
func (b *clcCase) introduce(ctx context.Context, c *peer.Conn) error {
	switch {
	case b.withoutConfirm && !b.server:
		return nil
	case b.withoutConfirm:
		return c.Answer(ctx)
	case b.further && c.Local.First && b.server: // our module's CONFIRM is of a link that the peer does not have
		if err := c.Answer(ctx); err != nil {
			return err
		}
		_, err := c.TCP.Message(ctx, peer.Confirm)
		return err
	case b.further && c.Local.First:
		c.Local.First = false
		if err := c.RecvAccept(ctx); err != nil {
			return err
		}
		c.Local.First = true
		return c.Answer(ctx)
	}
	return c.Confirm(ctx)
}

// use checks that a connection works, or that it breaks once our module writes.
func (b *clcCase) use(ctx context.Context, c *peer.Conn) error {
	if !b.lost {
		if err := c.Exchange(ctx, 1000); err != nil {
			return err
		}
		return c.Close(ctx)
	}
	if err := tolerable(c.Write(ctx, []byte("hello"))); err != nil {
		return err
	}
	defer c.HangUp()
	return c.AwaitError(ctx)
}

// introduce runs the cases of one role.
func (s *env) introduce(t *testing.T, third byte, server bool, cases []clcCase) {
	for i, b := range cases {
		b.server = server
		t.Run(b.name, func(t *testing.T) {
			if b.skip != "" {
				t.Skip(b.skip)
			}
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			if err := b.run(ctx, peer.NewLinkGroup(t, s.RoCENet, peer.Address(third, byte(i+1)), server)); err != nil {
				t.Error(err)
			}
			if err := s.unharmed(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCLCOverRoCE has peers send wrong values about their adapters, RMBs and limits.
func TestCLCOverRoCE(t *testing.T) {
	s := openEnv(t, 8)
	guest.Run(t, "ip tuntap add mode tun name tunnel; ip addr add 192.0.2.1/30 dev tunnel; "+
		"ip link set tunnel up; ip route add 198.51.100.0/24 via 192.0.2.2")
	t.Cleanup(func() { guest.Run(t, "ip link delete tunnel") })
	t.Run("client", func(t *testing.T) { s.introduce(t, 8, false, introducedByClients) })
	t.Run("server", func(t *testing.T) { s.introduce(t, 9, true, introducedByServers) })
}
