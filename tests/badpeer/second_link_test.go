// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// openLinked is openEnv with a second adapter, over which link groups may have a second link. The well-behaved peer has one link.
func openLinked(t *testing.T, third byte) *env {
	s := openEnv(t, third)
	peer.RoCEGuest.Set(t, "net.smc.smcr_max_links_per_lgr", "2")
	s.wire = peer.OpenSecondWire(t)
	return s
}

// openLinkedV1 is openLinked with version 1.
func openLinkedV1(t *testing.T, third byte) *env {
	peer.RoCEGuest.Set(t, "net.smc.smcr_v1_rocev2", "1")
	s := openLinked(t, third)
	s.v1 = true
	return s
}

// lossCase is how a link is lost while its connection has data on the way.
type lossCase struct {
	name   string
	second bool // it is the second one
	lose   func(ctx context.Context, g *peer.LinkGroup, q *peer.QP) error
}

// openBoth opens a group with two links, and a connection over the first.
func (s *env) openBoth(ctx context.Context, t *testing.T, addr netip.Addr, server bool) (*peer.LinkGroup, *peer.Conn) {
	t.Helper()
	g := peer.NewLinkGroup(t, s.RoCENet, addr, server)
	g.Wire = s.wire
	c, err := g.Open(ctx)
	if err == nil {
		err = g.AddSecondLink(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

// openShared opens a group, and a connection, with a peer that has one port for both links; our guest has two.
func openShared(ctx context.Context, t *testing.T, third byte, server bool) (*peer.LinkGroup, *peer.Conn) {
	t.Helper()
	s := openEnv(t, third)
	peer.RoCEGuest.Set(t, "net.smc.smcr_max_links_per_lgr", "2")
	g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(third, 1), server)
	g.Wire, g.SecondAddr = peer.OpenSecondWire(t), g.Addr
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return g, c
}

// traced switches a tracepoint on for the rest of the test. The function that it returns reads what has been traced.
func traced(t *testing.T, event string) func() string {
	t.Helper()
	const tracing = "/sys/kernel/tracing/"
	guest.Run(t, "echo >"+tracing+"trace; echo 1 >"+tracing+"events/"+event+"/enable")
	t.Cleanup(func() { guest.Run(t, "echo 0 >"+tracing+"events/"+event+"/enable") })
	return func() string { return guest.Run(t, "cat "+tracing+"trace") }
}

// losses are deletions in order, and queue pairs of the peer that fall silent: data and messages then do not arrive, or arrive
// without our module's knowledge, and come again by the other link.
var losses = []lossCase{
	{name: "first deleted", lose: deletedInOrder},
	{name: "second deleted", second: true, lose: deletedInOrder},
	{name: "first deaf", lose: fallsSilent(peer.Deaf)},
	{name: "second deaf", second: true, lose: fallsSilent(peer.Deaf)},
	{name: "first without acknowledgements", lose: fallsSilent(peer.Silent)},
	{name: "second without acknowledgements", second: true, lose: fallsSilent(peer.Silent)},
}

// deletedInOrder deletes a link by the other one.
func deletedInOrder(ctx context.Context, g *peer.LinkGroup, q *peer.QP) error {
	return g.DeleteLink(ctx, q)
}

// fallsSilent has a queue pair of the peer fall silent, and waits for our module to delete the link.
func fallsSilent(m peer.Manner) func(ctx context.Context, g *peer.LinkGroup, q *peer.QP) error {
	return func(ctx context.Context, g *peer.LinkGroup, q *peer.QP) error {
		q.SetManner(m)
		return g.LoseLink(ctx, q)
	}
}

// openOn opens a connection over one of the links. Our server takes the link with fewer connections, which is the second one.
func openOn(ctx context.Context, g *peer.LinkGroup, second bool) (*peer.Conn, error) {
	c := g.NewConn()
	if second && g.Server {
		c.UseSecond()
	}
	err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish)
	if err == nil && (c.QP != g.QP) != second {
		err = errors.New("the connection has the other link")
	}
	return c, err
}

// across exchanges more data than fits into the peer's RMB. While our module has not sent all of it, the link is lost.
func across(ctx context.Context, c *peer.Conn, lose func(context.Context) error) error {
	data := make([]byte, 100_000)
	for i := range data {
		data[i] = byte(i*7 + i>>8)
	}
	if err := c.Write(ctx, data); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if err := lose(ctx); err != nil {
		return fmt.Errorf("the link: %w", err)
	}
	got, err := c.Read(ctx, len(data))
	if err == nil && !bytes.Equal(got, data) {
		err = peer.ErrWrongData
	}
	if err != nil {
		return fmt.Errorf("by the other link: %w", err)
	}
	validations, gap := 0, false
	c.Group.Locked(func() { validations, gap = c.Validations, c.Gap })
	if validations == 0 || gap {
		return fmt.Errorf("our module has sent failover validation %d times, of a message that has not come: %v", validations, gap)
	}
	return nil
}

// wellLinked has a group with two links, over both of which connections go. One link is lost, and its connection goes on.
func (s *env) wellLinked(ctx context.Context, g *peer.LinkGroup, b lossCase) error {
	g.V1, g.Wire = s.v1, s.wire
	first, err := g.Open(ctx)
	if err == nil {
		err = g.AddSecondLink(ctx)
	}
	if err != nil {
		return err
	}
	c, other := first, (*peer.Conn)(nil)
	if other, err = openOn(ctx, g, true); err != nil {
		return err
	}
	if b.second {
		c, other = other, c
	}
	g.Locked(func() { g.RefuseLinks = true })
	lost := c.QP
	lose := func(ctx context.Context) error { return b.lose(ctx, g, lost) }
	return peer.InTurn(ctx,
		func(ctx context.Context) error { return first.Exchange(ctx, 70_000) },
		func(ctx context.Context) error { return other.Exchange(ctx, 5000) },
		func(ctx context.Context) error { return across(ctx, c, lose) },
		func(ctx context.Context) error { return c.Exchange(ctx, 70_000) },
		func(ctx context.Context) error { return other.Exchange(ctx, 5000) },
		g.UseNewConn, c.Close, other.Close)
}

// linksLost runs the cases of losses in both roles.
func (s *env) linksLost(t *testing.T, third byte) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	for i, b := range losses {
		for r, server := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, server %v", b.name, server), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
				defer cancel()
				g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(third+byte(r), byte(i+1)), server)
				if err := s.wellLinked(ctx, g, b); err != nil {
					t.Error(err)
				}
				if err := s.unharmed(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestSecondLink has well-behaved peers whose groups get a second link, and lose one of both.
func TestSecondLink(t *testing.T) {
	openLinked(t, 64).linksLost(t, 64)
}

// TestSecondLinkVersion1 does the same with version 1.
func TestSecondLinkVersion1(t *testing.T) {
	openLinkedV1(t, 66).linksLost(t, 66)
}

// asymmetric has a group get two links that share a port, and lose the first one.
func asymmetric(ctx context.Context, g *peer.LinkGroup) error {
	c, err := g.Open(ctx)
	if err == nil {
		err = g.AddSecondLink(ctx)
	}
	if err != nil {
		return err
	}
	g.Locked(func() { g.RefuseLinks = true })
	exchange := func(ctx context.Context) error { return c.Exchange(ctx, 5000) }
	return peer.InTurn(ctx, exchange, func(ctx context.Context) error { return c.MoveTo(ctx, g.Second.QP) }, exchange,
		func(ctx context.Context) error { return g.DeleteLink(ctx, g.QP) }, exchange, g.UseNewConn, c.Close)
}

// TestAsymmetricLinks has groups whose links share a port of our module, which a client accepts, or of the peer, in both roles.
func TestAsymmetricLinks(t *testing.T) {
	s := openEnv(t, 34)
	peer.RoCEGuest.Set(t, "net.smc.smcr_max_links_per_lgr", "2")
	for i, name := range []string{"our port", "port of a client", "port of a server"} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(34, byte(i+1)), i != 1)
			if i == 0 {
				g.Wire = s.Net
			} else {
				g.Wire = peer.OpenSecondWire(t)
				g.SecondAddr = g.Addr
			}
			if err := asymmetric(ctx, g); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnswersCrossed has a peer answer TEST LINK by the other link. That link has shown that it is out of step, and is deleted;
// the connection goes on by the link that was tested.
func TestAnswersCrossed(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	s := openLinked(t, 35)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g, c := s.openBoth(ctx, t, peer.Address(35, byte(i+1)), server)
			g.Locked(func() { g.RefuseLinks, g.CrossAnswers, g.LinkTests = true, true, 0 })
			// The first link is never silent, so our module tests the second one.
			for tested(g) == 0 && ctx.Err() == nil {
				if err := g.Post(g.QP, peer.LLC(peer.TestLink, 0)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
			}
			g.Locked(func() { g.CrossAnswers = false })
			err := peer.InTurn(ctx, func(ctx context.Context) error { return g.LoseLink(ctx, g.QP) },
				func(ctx context.Context) error { return c.Exchange(ctx, 5000) }, g.UseNewConn, c.Close)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSecondLinkLater has a client leave ADD LINK without answer: our server gives the new link up, and asks again some time later. Then the
// client needs longer than it had at first.
func TestSecondLinkLater(t *testing.T) {
	s := openLinked(t, 68)
	events := traced(t, "smckit/smc_link_not_added")
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(68, 1), false)
	g.Wire = s.wire
	c, err := g.Open(ctx)
	if err == nil {
		_, err = g.Take(ctx, peer.AddLink, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	answer := func(ctx context.Context) error {
		_, err := g.OfferLink(ctx, func(msg []byte) []byte {
			time.Sleep(3 * time.Second) // the first time, our server waits for two
			return msg
		})
		return err
	}
	err = peer.InTurn(ctx, answer, g.ConfirmSecond, func(ctx context.Context) error { return c.Exchange(ctx, 5000) }, g.UseNewConn, c.Close)
	if err != nil {
		t.Error(err)
	}
	if out := events(); !strings.Contains(out, fmt.Sprintf("server step=1 err=-%d", int(unix.ETIMEDOUT))) {
		t.Errorf("no event of a silent peer:\n%s", out)
	}
}

// TestSecondLinkHurried has a client leave each ADD LINK without answer: our server waits longer each time, but not while a new connection
// needs a new RMB, which cannot be confirmed meanwhile.
func TestSecondLinkHurried(t *testing.T) {
	s := openLinked(t, 73)
	ctx, cancel := context.WithTimeout(t.Context(), 3*peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(73, 1), false)
	g.Wire = s.wire
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := g.Take(ctx, peer.AddLink, 0); err != nil {
			t.Fatalf("ADD LINK %d: %v", i, err)
		}
	}
	if err := peer.InTurn(ctx, g.UseNewConn, c.Close); err != nil {
		t.Error(err)
	}
}

// TestUnacknowledged has a link whose end at the peer falls silent before our module sends a byte that it needs no completion
// of. TEST LINK is off: the link is lost because the adapter acknowledges nothing.
func TestUnacknowledged(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "0")
	s := openLinked(t, 69)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g, c := s.openBoth(ctx, t, peer.Address(69, byte(i+1)), server)
			if err := c.Exchange(ctx, 5000); err != nil {
				t.Fatal(err)
			}
			g.Locked(func() { g.RefuseLinks = true })
			lost := c.QP
			lost.SetManner(peer.Silent)
			err := peer.InTurn(ctx, func(ctx context.Context) error { return c.Write(ctx, []byte{1}) },
				func(ctx context.Context) error { return g.LoseLink(ctx, lost) },
				func(ctx context.Context) error { _, err := c.Read(ctx, 1); return err }, g.UseNewConn, c.Close)
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRequestedSoon has a server add a link that shares a port, again and again, as a stock server may while ports flap: our client asks
// for a better one ten seconds after the last of them, although links that do not last have it ask less and less often.
func TestRequestedSoon(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*peer.Timeout)
	defer cancel()
	g, c := openShared(ctx, t, 71, true)
	for i := range 4 {
		var err error
		if i > 0 {
			err = errors.Join(g.DeleteLink(ctx, g.Second.QP), g.AwaitLinks(ctx, 1))
		}
		if err := errors.Join(err, g.AddSecondLink(ctx)); err != nil {
			t.Fatalf("link %d: %v", i, err)
		}
		// The first one is asked for at once.
		if i == 0 || i == 3 {
			if _, err := g.Take(ctx, peer.RequestAddLink, 0); err != nil {
				t.Fatalf("REQUEST ADD LINK after link %d: %v", i, err)
			}
		}
	}
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestRefusedLater has a client refuse a link that it has asked for, as a stock client does while its port comes up: our server offers one
// again some time later, whether the group has one link or two that share the client's port.
func TestRefusedLater(t *testing.T) {
	t.Run("shared port", func(t *testing.T) { refusedLater(t, 72, true) })
	t.Run("one link", func(t *testing.T) { refusedLater(t, 74, false) })
}

func refusedLater(t *testing.T, third byte, shared bool) {
	ctx, cancel := context.WithTimeout(t.Context(), 4*peer.Timeout)
	defer cancel()
	g, c := openShared(ctx, t, third, false)
	events := traced(t, "smckit/smc_link_not_added")
	offers := 0
	refuse := func(ctx context.Context) error {
		offer, err := g.Take(ctx, peer.AddLink, 0)
		if err != nil {
			return fmt.Errorf("offer %d: %w", offers, err)
		}
		offers++
		return g.Send(ctx, peer.LLC(peer.AddLink, peer.Response|peer.AllLinks, offer[4:peer.MsgLength]...))
	}
	request := func(ctx context.Context) error {
		return g.Send(ctx, peer.LLC(peer.RequestAddLink, 0, make([]byte, 56)...))
	}
	exchange := func(ctx context.Context) error { return c.Exchange(ctx, 5000) }
	first := refuse
	if shared {
		first = g.AddSecondLink
	}
	if err := peer.InTurn(ctx, first, request, refuse, refuse, exchange, c.Close); err != nil {
		t.Error(err)
	}
	if out := events(); !strings.Contains(out, fmt.Sprintf("server step=1 err=-%d", int(unix.EREMOTEIO))) {
		t.Errorf("no event of a refusal:\n%s", out)
	}
}

// TestRequestedAgain has a server delete one of two links, and not add another, as a stock server does: our client asks it to some time
// later.
func TestRequestedAgain(t *testing.T) {
	s := openLinked(t, 70)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	g, c := s.openBoth(ctx, t, peer.Address(70, 1), true)
	if err := g.DeleteLink(ctx, g.Second.QP); err != nil {
		t.Fatal(err)
	}
	msg, err := g.Take(ctx, peer.RequestAddLink, 0)
	if err != nil || len(msg) != 60 || msg[24] != 2 {
		t.Errorf("REQUEST ADD LINK: %x, %v", msg, err)
	}
	if err := peer.InTurn(ctx, g.UseNewConn, c.Close); err != nil {
		t.Error(err)
	}
}
