// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// formingCase is what a peer sends over a link before its connection is established.
type formingCase struct {
	name    string
	server  bool
	further bool // in a group that is there
	do      func(ctx context.Context, c *peer.Conn) error
	skip    string
}

// sends sends messages over the link, and does not wait for acknowledgements.
func sends(msgs ...func(c *peer.Conn) []byte) func(context.Context, *peer.Conn) error {
	return func(_ context.Context, c *peer.Conn) error {
		for _, m := range msgs {
			if err := c.Group.QP.Send(m(c)); err != nil {
				return err
			}
		}
		return nil
	}
}

// linkMessage is a CONFIRM LINK with exactly these flags.
func linkMessage(flags, link byte) func(c *peer.Conn) []byte {
	return func(c *peer.Conn) []byte {
		m := c.Group.ConfirmLink(0, link)
		m[3] = flags
		return m
	}
}

// otherLink is a CONFIRM LINK that differs in one byte from ACCEPT or CONFIRM.
func otherLink(at int, flags byte) func(c *peer.Conn) []byte {
	return func(c *peer.Conn) []byte {
		m := linkMessage(flags, 1)(c)
		m[at] ^= 0x40
		return m
	}
}

// keyAsked waits for our module's CONFIRM RKEY.
func keyAsked(ctx context.Context, c *peer.Conn) error {
	_, err := c.Group.Take(ctx, peer.ConfirmRkey, 0)
	return err
}

func message(m []byte) func(c *peer.Conn) []byte { return func(*peer.Conn) []byte { return m } }

// linkAsked waits for our module's CONFIRM LINK, or its response.
func linkAsked(ctx context.Context, c *peer.Conn) error {
	flags := byte(0)
	if c.Group.Server {
		flags = peer.Response
	}
	_, err := c.Group.Take(ctx, peer.ConfirmLink, flags)
	return err
}

// usable finishes the handshake, and checks that the connection works.
func usable(ctx context.Context, c *peer.Conn) error {
	c.Group.Formed = true
	if err := c.AwaitApp(ctx); err != nil {
		return err
	}
	if err := c.Exchange(ctx, 1000); err != nil {
		return err
	}
	return c.Close(ctx)
}

// answersKey answers our module's CONFIRM RKEY with a changed response.
func answersKey(change func(m []byte)) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		m, err := c.Group.Take(ctx, peer.ConfirmRkey, 0)
		if err != nil {
			return err
		}
		m = bytes.Clone(m)
		m[3] |= peer.Response
		change(m)
		return c.Group.Send(ctx, m)
	}
}

// early sends CDC messages before CONFIRM.
func early(changes ...func(m *peer.CDC)) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		if err := peer.InTurn(ctx, c.RecvAccept, c.AnnounceRMB); err != nil {
			return err
		}
		for _, change := range changes {
			if err := c.SendCDC(ctx, change); err != nil {
				return err
			}
		}
		return c.Answer(ctx)
	}
}

func nothing(*peer.CDC) {}

// mayBreak allows our module to reset the connection meanwhile.
func mayBreak(do func(ctx context.Context, c *peer.Conn) error) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		if err := do(ctx, c); !errors.Is(err, peer.ErrReset) {
			return err
		}
		return nil
	}
}

// earlyWrite writes data before CONFIRM.
func earlyWrite(ctx context.Context, c *peer.Conn) error {
	hello := []byte("before CONFIRM")
	if err := peer.InTurn(ctx, c.RecvAccept, c.AnnounceRMB); err != nil {
		return err
	}
	if err := c.Put(hello); err != nil {
		return err
	}
	if err := peer.InTurn(ctx, func(ctx context.Context) error { return c.SendCDC(ctx) }, c.Answer, c.AwaitApp); err != nil {
		return err
	}
	got, err := c.Read(ctx, len(hello))
	if err == nil && !bytes.Equal(got, hello) {
		err = peer.ErrWrongData
	}
	if err == nil {
		err = c.Exchange(ctx, 1000)
	}
	if err != nil {
		return err
	}
	return c.Close(ctx)
}

// breaksOrFalls is for a group that ends during the handshake of a connection: this falls back to TCP, or is reset.
func breaksOrFalls(ctx context.Context, c *peer.Conn) error {
	_, err := c.TCP.Message(ctx, peer.Decline)
	if err == nil {
		err = c.TCP.Push(c.TCP.Segment(peer.ACK | peer.FIN))
	}
	if err == nil {
		err = c.TCP.Ended(ctx)
	}
	if errors.Is(err, peer.ErrReset) || c.TCP.Fin {
		return nil
	}
	return err
}

// sendsCDCEarly sends CDC messages of a connection whose link is not confirmed yet.
func sendsCDCEarly(changes ...func(m *peer.CDC)) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error {
		for _, change := range changes {
			m := c.NextCDC()
			change(&m)
			if err := c.Group.QP.Send(m.Marshal()); err != nil {
				return err
			}
		}
		return nil
	}
}

// declines sends a DECLINE, and checks that the connection is one of TCP from then on.
func declines(flags byte) func(ctx context.Context, c *peer.Conn) error {
	return func(ctx context.Context, c *peer.Conn) error { return c.SendDecline(ctx, flags) }
}

// resets resets the TCP connection, and waits for the application's error if there is an application.
func resets(ctx context.Context, c *peer.Conn) error {
	if err := c.TCP.Put(c.TCP.Segment(peer.RST | peer.ACK)); err != nil {
		return err
	}
	return c.AwaitError(ctx)
}

// fins closes our direction of the TCP connection, as the stock module does after shutdown(SHUT_WR).
func fins(ctx context.Context, c *peer.Conn) error {
	return c.TCP.Send(ctx, c.TCP.Segment(peer.ACK|peer.FIN))
}

// tcpBroken waits for the end of the TCP connection, and for the application's error if there is an application.
func tcpBroken(ctx context.Context, c *peer.Conn) error {
	if err := c.TCP.Ended(ctx); err != nil {
		return err
	}
	return c.AwaitError(ctx)
}

// unharmed checks that the group's first connection works.
func unharmed(ctx context.Context, c *peer.Conn) error { return c.Group.First.Exchange(ctx, 1000) }

// over waits for the end of the application.
func over(ctx context.Context, c *peer.Conn) error {
	defer c.HangUp()
	return c.App.Wait(ctx)
}

func aborted(m *peer.CDC) { m.State = peer.Aborted }
func closed(m *peer.CDC)  { m.State = peer.DoneWriting | peer.Closed }
func ahead(m *peer.CDC)   { m.Cons.Count = 100 }
func beyond(m *peer.CDC)  { m.Cons.Count, m.Prod.Count = 1<<31, 1<<31 }

// asked is first contact up to the question of CONFIRM LINK, the others are the part in it of a client and of a server.
var (
	asked        = sequence(begin, confirm, linkAsked)
	answersLink  = sends(linkMessage(peer.Response|peer.NoEyecatchers, 1))
	confirmsLink = sequence(sends(linkMessage(peer.NoEyecatchers, 1)), linkAsked)
)

var formings = []formingCase{
	{name: "end before the link is confirmed", do: sequence(asked, sendsCDCEarly(closed), answersLink, settled, over)},
	{name: "end before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, sendsCDCEarly(closed), confirmsLink, settled, over)},
	{name: "impossible cursors before the link is confirmed", do: sequence(asked, sendsCDCEarly(beyond, nothing), answersLink, usable)},
	{name: "impossible cursors before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, sendsCDCEarly(beyond, nothing), confirmsLink, usable)},
	{name: "reads ahead before the link is confirmed", do: sequence(asked, sendsCDCEarly(ahead), falls(reasonLink))},
	{name: "reads ahead before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, sendsCDCEarly(ahead), falls(reasonLink))},
	{name: "abort instead of the answer", do: sequence(asked, sendsCDCEarly(aborted), tcpBroken)},
	{name: "abort instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, sendsCDCEarly(aborted), tcpBroken)},
	{name: "end instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, sendsCDCEarly(closed), falls(reasonTimeout))},
	{name: "DECLINE instead of the answer", do: sequence(asked, declines(0))},
	{name: "DECLINE instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, declines(0))},
	{name: "out of sync instead of the answer", do: sequence(asked, declines(8))},
	{name: "DECLINE instead of CONFIRM", further: true, do: sequence(begin, accepted, declines(0))},
	{name: "out of sync instead of CONFIRM", further: true, do: sequence(begin, accepted, declines(8), unharmed)},
	{name: "RST instead of the answer", do: sequence(asked, resets)},
	{name: "RST instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, resets)},
	{name: "RST instead of CONFIRM", further: true, do: sequence(begin, accepted, resets)},
	{name: "RST instead of a key", further: true, do: sequence(mute, begin, keyAsked, resets)},
	{name: "RST instead of a key, by a server", server: true, further: true, do: sequence(begin, announce, mute, answer, keyAsked, resets)},
	{name: "FIN before the answer", do: sequence(asked, fins, answersLink, usable)},
	{name: "FIN instead of the answer", do: sequence(asked, fins, tcpBroken)},
	{name: "FIN and RST instead of the answer", do: sequence(asked, fins, resets)},
	{name: "FIN instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, mayBreak(fins), tcpBroken)},
	{name: "CONFIRM LINK of the server", do: sequence(begin, confirm, linkAsked, sends(linkMessage(peer.NoEyecatchers, 1)), falls(reasonLink))},
	{name: "CONFIRM LINK of the client", server: true, do: sequence(begin, confirm, sends(linkMessage(peer.Response|peer.NoEyecatchers, 1)), falls(reasonLink))},
	{name: "eye catchers", do: sequence(begin, confirm, linkAsked, sends(linkMessage(peer.Response, 1)), falls(reasonEyecatcher))},
	{name: "eye catchers of a server", server: true, do: sequence(begin, confirm, sends(linkMessage(0, 1)), falls(reasonEyecatcher))},
	{name: "answer with another number", do: sequence(begin, confirm, linkAsked, sends(linkMessage(peer.Response|peer.NoEyecatchers, 99)), falls(reasonLink, reasonTimeout))},
	{name: "link 0", server: true, do: sequence(begin, confirm, sends(linkMessage(peer.NoEyecatchers, 0)), linkAsked, usable)},
	{name: "CONFIRM LINK three times", server: true, do: sequence(begin, confirm, sends(linkMessage(peer.NoEyecatchers, 1), linkMessage(peer.NoEyecatchers, 1), linkMessage(0, 1)), linkAsked, usable)},
	{name: "CONFIRM LINK with another number", server: true, do: sequence(begin, confirm, sends(linkMessage(peer.NoEyecatchers, 1), linkMessage(peer.NoEyecatchers, 2)), breaksOrFalls)},
	{name: "CONFIRM LINK of another queue pair", server: true, do: sequence(begin, confirm, sends(otherLink(26, peer.NoEyecatchers)), falls(reasonLink))},
	{name: "CONFIRM LINK of another GID", server: true, do: sequence(begin, confirm, sends(otherLink(10, peer.NoEyecatchers)), falls(reasonLink))},
	{name: "CONFIRM LINK of another MAC", server: true, do: sequence(begin, confirm, sends(otherLink(4, peer.NoEyecatchers)), falls(reasonLink))},
	{name: "answer of another queue pair", do: sequence(asked, sends(otherLink(26, peer.Response|peer.NoEyecatchers)), falls(reasonLink))},
	{name: "answer of another GID", do: sequence(asked, sends(otherLink(10, peer.Response|peer.NoEyecatchers)), falls(reasonLink))},
	{name: "answer of another MAC", do: sequence(asked, sends(otherLink(4, peer.Response|peer.NoEyecatchers)), falls(reasonLink))},
	{name: "answer three times", do: sequence(begin, confirm, linkAsked, sends(linkMessage(peer.Response|peer.NoEyecatchers, 1), linkMessage(peer.Response, 1), linkMessage(peer.Response|peer.NoEyecatchers, 1)), usable)},
	{name: "end of all", do: sequence(begin, confirm, linkAsked, sends(message(peer.LLC(peer.DeleteLink, peer.AllLinks))), falls(reasonLink, reasonTimeout))},
	{name: "end of all, by a server", server: true, do: sequence(begin, confirm, sends(message(peer.LLC(peer.DeleteLink, peer.AllLinks))), falls(reasonLink, reasonTimeout))},
	{name: "end of the link", do: sequence(begin, confirm, linkAsked, sends(message(peer.LLC(peer.DeleteLink, 0, theLink...))), falls(reasonLink, reasonTimeout))},
	{name: "keys and tests first", server: true, do: sequence(begin, confirm, sends(message(peer.LLC(peer.TestLink, 0)), message(peer.LLC(peer.ConfirmRkey, 0, 0, 1, 2, 3)),
		message(peer.LLC(peer.AddLink, 0)), message(peer.LLC(peer.DeleteRkey, 0, 0)), linkMessage(peer.NoEyecatchers, 1)), linkAsked, usable)},
	{name: "key refused", further: true, do: sequence(mute, begin, answersKey(func(m []byte) { m[3] |= peer.Negative }), falls(reasonBuffer))},
	{name: "another key confirmed", further: true, do: sequence(mute, begin, answersKey(func(m []byte) { m[5] ^= 1 }), falls(reasonBuffer))},
	{name: "key refused by a server", server: true, further: true, do: sequence(begin, announce, mute, answer, answersKey(func(m []byte) { m[3] |= peer.Negative }), falls(reasonBuffer))},
	{name: "end of all instead of a key", further: true, do: sequence(mute, begin, keyAsked, sends(message(peer.LLC(peer.DeleteLink, peer.AllLinks))), breaksOrFalls)},
	{name: "end of all instead of a key, by a server", server: true, further: true, do: sequence(begin, announce, mute, answer, keyAsked, sends(message(peer.LLC(peer.DeleteLink, peer.AllLinks))), breaksOrFalls)},
	{name: "data before CONFIRM", further: true, do: sequence(begin, earlyWrite)},
	{name: "nothing new before CONFIRM, often", further: true, do: sequence(begin, early(nothing, nothing, nothing), usable)},
	{name: "reads ahead before CONFIRM", further: true, do: sequence(begin, mayBreak(early(ahead)), breaksOrFalls)},
	{name: "impossible cursors before CONFIRM", further: true, do: sequence(begin, early(beyond), usable)},
	{name: "abort before CONFIRM", further: true, do: sequence(begin, early(aborted), settled, breaks)},
	{name: "end before CONFIRM", further: true, do: sequence(begin, early(closed), settled, over)},
	{name: "urgent before CONFIRM", further: true, do: sequence(begin, early(func(m *peer.CDC) { m.Flags = peer.UrgentPresent | peer.UrgentPending }, func(m *peer.CDC) { m.Flags = peer.UrgentPresent }), usable)},
}

// TestForming has peers send messages over a link before the link group or the connection is established.
func TestForming(t *testing.T) {
	s := openEnv(t, 12)
	t.Run("all", func(t *testing.T) {
		for i, b := range formings {
			t.Run(b.name, func(t *testing.T) {
				if b.skip != "" {
					t.Skip(b.skip)
				}
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
				defer cancel()
				g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(13, byte(i+1)), b.server)
				if b.further {
					var err error
					g.First, err = g.Open(ctx)
					if err != nil {
						t.Fatal(err)
					}
					defer g.First.HangUp()
				}
				if err := b.do(ctx, g.NewConn()); err != nil {
					t.Error(err)
				}
				if err := s.unharmed(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
