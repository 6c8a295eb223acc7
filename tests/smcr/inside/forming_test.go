// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// Reasons that our side gives for what it hears over a link.
const reasonEyecatcher = 0x03050000

// forming is what a peer may say over a link before the connection is there that it is for.
type forming struct {
	name    string
	server  bool
	further bool // in a group that is there
	do      func(ctx context.Context, c *conn) error
	skip    string
}

// sends sends messages over the link, and waits for nothing.
func sends(msgs ...func(c *conn) []byte) func(context.Context, *conn) error {
	return func(_ context.Context, c *conn) error {
		for _, m := range msgs {
			if err := c.g.qp.Send(m(c)); err != nil {
				return err
			}
		}
		return nil
	}
}

// linkMessage is a CONFIRM LINK with these flags, and no others.
func linkMessage(flags, link byte) func(c *conn) []byte {
	return func(c *conn) []byte {
		m := c.g.confirmLinkMessage(0, link)
		m[3] = flags
		return m
	}
}

// otherLink is a CONFIRM LINK with these flags, in which a byte is not what it was in ACCEPT or CONFIRM.
func otherLink(at int, flags byte) func(c *conn) []byte {
	return func(c *conn) []byte {
		m := linkMessage(flags, 1)(c)
		m[at] ^= 0x40
		return m
	}
}

// keyAsked waits for our module's CONFIRM RKEY.
func keyAsked(ctx context.Context, c *conn) error {
	_, err := c.g.take(ctx, confirmRkey, 0)
	return err
}

func message(m []byte) func(c *conn) []byte { return func(*conn) []byte { return m } }

// linkAsked waits for our module's CONFIRM LINK, or its answer.
func linkAsked(ctx context.Context, c *conn) error {
	flags := byte(0)
	if c.g.server {
		flags = response
	}
	_, err := c.g.take(ctx, confirmLink, flags)
	return err
}

// works finishes the handshake, and checks that the connection can be used.
func works(ctx context.Context, c *conn) error {
	c.g.formed = true
	if err := c.settled(ctx); err != nil {
		return err
	}
	if err := c.exchange(ctx, 1000); err != nil {
		return err
	}
	return c.close(ctx)
}

// answersKey answers our module's CONFIRM RKEY with changes.
func answersKey(change func(m []byte)) func(ctx context.Context, c *conn) error {
	return func(ctx context.Context, c *conn) error {
		m, err := c.g.take(ctx, confirmRkey, 0)
		if err != nil {
			return err
		}
		m = bytes.Clone(m)
		m[3] |= response
		change(m)
		return c.g.says(ctx, m)
	}
}

// early tells of the connection before our module has heard of it by CONFIRM.
func early(changes ...func(m *cdc)) func(ctx context.Context, c *conn) error {
	return func(ctx context.Context, c *conn) error {
		if err := inTurn(ctx, c.accepted, c.announce); err != nil {
			return err
		}
		for _, change := range changes {
			if err := c.tell(ctx, change); err != nil {
				return err
			}
		}
		return c.answer(ctx)
	}
}

func nothing(*cdc) {}

// mayBreak does something, in which our module may reset the connection.
func mayBreak(do func(ctx context.Context, c *conn) error) func(ctx context.Context, c *conn) error {
	return func(ctx context.Context, c *conn) error {
		if err := do(ctx, c); !errors.Is(err, peer.ErrReset) {
			return err
		}
		return nil
	}
}

// earlyWrite does it with data.
func earlyWrite(ctx context.Context, c *conn) error {
	hello := []byte("before CONFIRM")
	if err := inTurn(ctx, c.accepted, c.announce); err != nil {
		return err
	}
	if err := c.put(hello); err != nil {
		return err
	}
	if err := inTurn(ctx, func(ctx context.Context) error { return c.tell(ctx) }, c.answer, c.settled); err != nil {
		return err
	}
	got, err := c.read(ctx, len(hello))
	if err == nil && !bytes.Equal(got, hello) {
		err = errWrong
	}
	if err == nil {
		err = c.exchange(ctx, 1000)
	}
	if err != nil {
		return err
	}
	return c.close(ctx)
}

// breaksOrFalls is for a group that ends while a connection of it is being made: that is one of TCP, or broken.
func breaksOrFalls(ctx context.Context, c *conn) error {
	_, err := c.tcp.Message(ctx, peer.Decline)
	if err == nil {
		err = c.tcp.Push(c.tcp.Segment(peer.ACK | peer.FIN))
	}
	if err == nil {
		err = c.tcp.Ended(ctx)
	}
	if errors.Is(err, peer.ErrReset) || c.tcp.Fin {
		return nil
	}
	return err
}

// tells tells of a connection whose link is not confirmed yet.
func tells(changes ...func(m *cdc)) func(ctx context.Context, c *conn) error {
	return func(ctx context.Context, c *conn) error {
		for _, change := range changes {
			m := c.next()
			change(&m)
			if err := c.g.qp.Send(m.marshal()); err != nil {
				return err
			}
		}
		return nil
	}
}

// declines sends a DECLINE, and checks that the connection is one of TCP from then on.
func declines(flags byte) func(ctx context.Context, c *conn) error {
	return func(ctx context.Context, c *conn) error {
		if err := c.tcp.Write(ctx, peer.With(peer.DeclineV2(), 7, 0x20|flags)); err != nil {
			return err
		}
		return c.byTCP(ctx)
	}
}

// resets ends TCP's connection, and waits for the application to hear of it, if there is one.
func resets(ctx context.Context, c *conn) error {
	if err := c.tcp.Put(c.tcp.Segment(peer.RST | peer.ACK)); err != nil {
		return err
	}
	return c.brokenOff(ctx)
}

// fins ends our direction of TCP's connection, as the stock module does when its application says that it writes no more.
func fins(ctx context.Context, c *conn) error {
	return c.tcp.Send(ctx, c.tcp.Segment(peer.ACK|peer.FIN))
}

// broken waits for the end of TCP's connection, which the application hears of, if there is one.
func broken(ctx context.Context, c *conn) error {
	if err := c.tcp.Ended(ctx); err != nil {
		return err
	}
	return c.brokenOff(ctx)
}

func (c *conn) brokenOff(ctx context.Context) error {
	if c.app == nil {
		return nil
	}
	if err := c.app.wait(ctx); err != nil {
		return err
	}
	if c.app.err == nil {
		return errors.New("the application has heard of no error")
	}
	return nil
}

// unharmed checks that the group's first connection works.
func unharmed(ctx context.Context, c *conn) error { return c.g.first.exchange(ctx, 1000) }

// over waits for the application's end, in whatever way.
func over(ctx context.Context, c *conn) error {
	defer c.hangUp()
	return c.app.wait(ctx)
}

func aborted(m *cdc) { m.state = stateAbort }
func closed(m *cdc)  { m.state = stateDone | stateClosed }
func ahead(m *cdc)   { m.cons.count = 100 }
func beyond(m *cdc)  { m.cons.count, m.prod.count = 1<<31, 1<<31 }

// asked is first contact up to the question of CONFIRM LINK, the others are the part in it of a client and of a server.
var (
	asked        = sequence(begin, confirm, linkAsked)
	answersLink  = sends(linkMessage(response|plain, 1))
	confirmsLink = sequence(sends(linkMessage(plain, 1)), linkAsked)
)

var formings = []forming{
	{name: "end before the link is confirmed", do: sequence(asked, tells(closed), answersLink, settled, over)},
	{name: "end before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, tells(closed), confirmsLink, settled, over)},
	{name: "impossible cursors before the link is confirmed", do: sequence(asked, tells(beyond, nothing), answersLink, works)},
	{name: "impossible cursors before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, tells(beyond, nothing), confirmsLink, works)},
	{name: "reads ahead before the link is confirmed", do: sequence(asked, tells(ahead), falls(reasonLink))},
	{name: "reads ahead before the link is confirmed, by a server", server: true, do: sequence(begin, confirm, tells(ahead), falls(reasonLink))},
	{name: "abort instead of the answer", do: sequence(asked, tells(aborted), broken)},
	{name: "abort instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, tells(aborted), broken)},
	{name: "end instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, tells(closed), falls(reasonTimeout))},
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
	{name: "FIN before the answer", do: sequence(asked, fins, answersLink, works)},
	{name: "FIN instead of the answer", do: sequence(asked, fins, broken)},
	{name: "FIN and RST instead of the answer", do: sequence(asked, fins, resets)},
	{name: "FIN instead of CONFIRM LINK", server: true, do: sequence(begin, confirm, mayBreak(fins), broken)},
	{name: "CONFIRM LINK of the server", do: sequence(begin, confirm, linkAsked, sends(linkMessage(plain, 1)), falls(reasonLink))},
	{name: "CONFIRM LINK of the client", server: true, do: sequence(begin, confirm, sends(linkMessage(response|plain, 1)), falls(reasonLink))},
	{name: "eye catchers", do: sequence(begin, confirm, linkAsked, sends(linkMessage(response, 1)), falls(reasonEyecatcher))},
	{name: "eye catchers of a server", server: true, do: sequence(begin, confirm, sends(linkMessage(0, 1)), falls(reasonEyecatcher))},
	{name: "answer with another number", do: sequence(begin, confirm, linkAsked, sends(linkMessage(response|plain, 99)), falls(reasonLink, reasonTimeout))},
	{name: "link 0", server: true, do: sequence(begin, confirm, sends(linkMessage(plain, 0)), linkAsked, works)},
	{name: "CONFIRM LINK three times", server: true, do: sequence(begin, confirm, sends(linkMessage(plain, 1), linkMessage(plain, 1), linkMessage(0, 1)), linkAsked, works)},
	{name: "CONFIRM LINK with another number", server: true, do: sequence(begin, confirm, sends(linkMessage(plain, 1), linkMessage(plain, 2)), breaksOrFalls)},
	{name: "CONFIRM LINK of another queue pair", server: true, do: sequence(begin, confirm, sends(otherLink(26, plain)), falls(reasonLink))},
	{name: "CONFIRM LINK of another GID", server: true, do: sequence(begin, confirm, sends(otherLink(10, plain)), falls(reasonLink))},
	{name: "CONFIRM LINK of another MAC", server: true, do: sequence(begin, confirm, sends(otherLink(4, plain)), falls(reasonLink))},
	{name: "answer of another queue pair", do: sequence(asked, sends(otherLink(26, response|plain)), falls(reasonLink))},
	{name: "answer of another GID", do: sequence(asked, sends(otherLink(10, response|plain)), falls(reasonLink))},
	{name: "answer of another MAC", do: sequence(asked, sends(otherLink(4, response|plain)), falls(reasonLink))},
	{name: "answer three times", do: sequence(begin, confirm, linkAsked, sends(linkMessage(response|plain, 1), linkMessage(response, 1), linkMessage(response|plain, 1)), works)},
	{name: "end of all", do: sequence(begin, confirm, linkAsked, sends(message(llcMessage(deleteLink, all))), falls(reasonLink, reasonTimeout))},
	{name: "end of all, by a server", server: true, do: sequence(begin, confirm, sends(message(llcMessage(deleteLink, all))), falls(reasonLink, reasonTimeout))},
	{name: "end of the link", do: sequence(begin, confirm, linkAsked, sends(message(llcMessage(deleteLink, 0, theLink...))), falls(reasonLink, reasonTimeout))},
	{name: "keys and tests first", server: true, do: sequence(begin, confirm, sends(message(llcMessage(testLink, 0)), message(llcMessage(confirmRkey, 0, 0, 1, 2, 3)),
		message(llcMessage(addLink, 0)), message(llcMessage(deleteRkey, 0, 0)), linkMessage(plain, 1)), linkAsked, works)},
	{name: "key refused", further: true, do: sequence(mute, begin, answersKey(func(m []byte) { m[3] |= negative }), falls(reasonBuffer))},
	{name: "another key confirmed", further: true, do: sequence(mute, begin, answersKey(func(m []byte) { m[5] ^= 1 }), falls(reasonBuffer))},
	{name: "key refused by a server", server: true, further: true, do: sequence(begin, announce, mute, answer, answersKey(func(m []byte) { m[3] |= negative }), falls(reasonBuffer))},
	{name: "end of all instead of a key", further: true, do: sequence(mute, begin, keyAsked, sends(message(llcMessage(deleteLink, all))), breaksOrFalls)},
	{name: "end of all instead of a key, by a server", server: true, further: true, do: sequence(begin, announce, mute, answer, keyAsked, sends(message(llcMessage(deleteLink, all))), breaksOrFalls)},
	{name: "data before CONFIRM", further: true, do: sequence(begin, earlyWrite)},
	{name: "nothing new before CONFIRM, often", further: true, do: sequence(begin, early(nothing, nothing, nothing), works)},
	{name: "reads ahead before CONFIRM", further: true, do: sequence(begin, mayBreak(early(ahead)), breaksOrFalls)},
	{name: "impossible cursors before CONFIRM", further: true, do: sequence(begin, early(beyond), works)},
	{name: "abort before CONFIRM", further: true, do: sequence(begin, early(aborted), settled, breaks)},
	{name: "end before CONFIRM", further: true, do: sequence(begin, early(closed), settled, over)},
	{name: "urgent before CONFIRM", further: true, do: sequence(begin, early(func(m *cdc) { m.flags = flagUrgent | flagPending }, func(m *cdc) { m.flags = flagUrgent }), works)},
}

// TestPeersForming plays what a peer may say over a link while a group or a connection is being made.
func TestPeersForming(t *testing.T) {
	s := openEnv(t, 12)
	t.Run("all", func(t *testing.T) {
		for i, b := range formings {
			t.Run(b.name, func(t *testing.T) {
				if b.skip != "" {
					t.Skip(b.skip)
				}
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				g := newGroup(t, s.network, address(13, byte(i+1)), b.server)
				if b.further {
					var err error
					g.first, err = g.open(ctx)
					if err != nil {
						t.Fatal(err)
					}
					defer g.first.hangUp()
				}
				if err := b.do(ctx, g.conn()); err != nil {
					t.Error(err)
				}
				if err := s.unharmed(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	})
}
