// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// linkStep is a step of a case with two links, which uses one of them.
type linkStep func(ctx context.Context, s *session, q *peer.QP) error

// byFirst takes a step by the first link.
func byFirst(do linkStep) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error { return do(ctx, s, s.Group.QP) }
}

// bySecond takes a step by the second link.
func bySecond(do linkStep) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error { return do(ctx, s, s.Group.Second.QP) }
}

// byEach takes a step by each link in turn, a number of times.
func byEach(times int, do linkStep) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for range times {
			for _, q := range []*peer.QP{s.Group.QP, s.Group.Second.QP} {
				if err := do(ctx, s, q); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// inOrder takes steps of a case one after the other.
func inOrder(steps ...func(context.Context, *session) error) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for i, step := range steps {
			if err := step(ctx, s); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	}
}

// posts sends messages by a link, and does not wait: our module may end the link first.
func posts(msgs ...[]byte) linkStep {
	return func(_ context.Context, s *session, q *peer.QP) error { return s.Group.Post(q, msgs...) }
}

// asks sends a message, and checks that the response comes by the same link, has these flags, and does not have others.
func asks(flags, not byte, msg []byte) linkStep {
	return func(ctx context.Context, s *session, q *peer.QP) error {
		answer, err := s.Group.RequestBy(ctx, q, msg)
		if err == nil && (answer[3]&flags != flags || answer[3]&not != 0 || len(answer) != peer.MsgLength) {
			err = fmt.Errorf("%x is answered by %x", msg, answer)
		}
		return err
	}
}

// losesSecond takes steps for which our module deletes the second link alone. New connections then use the first.
func losesSecond(steps ...func(context.Context, *session) error) func(context.Context, *session) error {
	steps = append(steps, func(ctx context.Context, s *session) error {
		s.Group.Locked(func() { s.Group.RefuseLinks = true })
		return s.Group.LoseLink(ctx, s.Group.Second.QP)
	}, opensAnother)
	return inOrder(steps...)
}

// losesFirst takes steps for which our module deletes the first link alone. All connections go on by the second.
func losesFirst(steps ...func(context.Context, *session) error) func(context.Context, *session) error {
	steps = append(steps, func(ctx context.Context, s *session) error {
		s.Group.Locked(func() { s.Group.RefuseLinks = true })
		return s.Group.LoseLink(ctx, s.Group.QP)
	}, opensAnother)
	return inOrder(steps...)
}

// outOfStep checks that our module has deleted a link because the peer has broken the protocol on it.
func outOfStep(do func(context.Context, *session) error) func(context.Context, *session) error {
	return inOrder(do, func(_ context.Context, s *session) error { return s.Group.DeletedFor(peer.Violation, false) })
}

// withoutPath checks that our module has deleted a link because it does not work.
func withoutPath(do func(context.Context, *session) error) func(context.Context, *session) error {
	return inOrder(do, func(_ context.Context, s *session) error { return s.Group.DeletedFor(peer.PathLost, false) })
}

// opensAnother uses another connection of the group.
func opensAnother(ctx context.Context, s *session) error { return s.Group.UseNewConn(ctx) }

// exchanges uses the connection.
func exchanges(ctx context.Context, s *session) error { return s.Exchange(ctx, 1000) }

// moves has the connection use the second link, or the first again.
func moves(ctx context.Context, s *session) error { return s.MoveTo(ctx, s.Group.Other(s.QP)) }

// deletes deletes one of the links in order.
func deletes(ctx context.Context, s *session, q *peer.QP) error {
	s.Group.Locked(func() { s.Group.RefuseLinks = true })
	return s.Group.DeleteLink(ctx, q)
}

// confirmFlags are those of the peer's CONFIRM LINK: a server asks, a client answers.
func confirmFlags(s *session) byte {
	if s.Group.Server {
		return 0
	}
	return peer.Response
}

// repeatsConfirm sends the CONFIRM LINK of the second link by a link, with changed flags and bytes.
func repeatsConfirm(flags byte, at int, b ...byte) linkStep {
	return func(_ context.Context, s *session, q *peer.QP) error {
		l := s.Group.Second
		return s.Group.Post(q, peer.With(peer.ConfirmLinkOf(l.QP, confirmFlags(s)^flags, l.Link), at, b...))
	}
}

// offersThird sends ADD LINK for a third link, which is refused; a server refuses all ADD LINK of clients.
func offersThird(ctx context.Context, s *session, q *peer.QP) error {
	return asks(peer.Response|peer.AllLinks, 0, peer.With(s.Group.AddLinkMessage(0), 31, 3))(ctx, s, q)
}

// deletesTwice deletes the second link, by two messages.
func deletesTwice(ctx context.Context, s *session) error {
	g := s.Group
	if err := g.Post(g.QP, g.DeleteMessage(0, g.Second.QP)); err != nil {
		return err
	}
	return deletes(ctx, s, g.Second.QP)
}

// deletesItself deletes the first link by that link. A client has the server's request by the other one.
func deletesItself(ctx context.Context, s *session) error {
	g := s.Group
	g.Locked(func() { g.RefuseLinks = true })
	first, number := g.QP, g.Link
	if err := g.Post(first, g.DeleteMessage(0, first)); err != nil {
		return err
	}
	if !g.Server {
		return g.LoseLink(ctx, first)
	}
	answer, err := g.TakeBy(ctx, g.Second.QP, peer.DeleteLink, peer.Response)
	if err == nil && answer[4] != number {
		err = fmt.Errorf("DELETE LINK is answered by %x", answer)
	}
	if err == nil {
		err = s.MoveTo(ctx, g.Second.QP)
	}
	g.Drop(first)
	return err
}

// deletesItselfBy deletes a link by that link, and does not wait.
func deletesItselfBy(_ context.Context, s *session, q *peer.QP) error {
	return s.Group.Post(q, s.Group.DeleteMessage(0, q))
}

// treats has a queue pair treat packets in a manner.
func treats(m peer.Manner) linkStep {
	return func(_ context.Context, _ *session, q *peer.QP) error {
		q.SetManner(m)
		return nil
	}
}

// twoLinks are peers with two links, on the first of which the connection is.
var twoLinks = []connCase{
	{name: "TEST LINK by each link", want: ignored, do: byEach(20, asks(peer.Response, 0, peer.LLC(peer.TestLink, 0, 1, 2, 3)))},
	{name: "answer to a TEST LINK that was not sent, by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts(peer.LLC(peer.TestLink, peer.Response)))))},
	{name: "answer to a TEST LINK that was not sent, by the first", want: ignored, do: outOfStep(losesFirst(byFirst(posts(peer.LLC(peer.TestLink, peer.Response)))))},
	{name: "unknown type, by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts(peer.LLC(0x7f, 0)))))},
	{name: "1 byte, by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts([]byte{7}))))},
	{name: "longer than any, by the second", want: ignored, do: losesSecond(bySecond(posts(make([]byte, 8193))))},
	{name: "NAK for all, by the second", want: ignored, do: withoutPath(losesSecond(bySecond(treats(peer.Hostile)), bySecond(posts(peer.LLC(peer.TestLink, 0)))))},
	{name: "TEST LINK 200 times by the second, which is deaf", want: ignored, do: losesSecond(bySecond(treats(peer.Deaf)), bySecond(posts(slices.Repeat([][]byte{peer.LLC(peer.TestLink, 0)}, 200)...)))},
	{name: "immediate data that was not agreed, by the second", want: ignored, do: outOfStep(losesSecond(bySecond(func(_ context.Context, s *session, q *peer.QP) error {
		return q.WriteImm(s.Remote.RMB, s.Remote.Rkey, nil, 0x12345678)
	})))},
	{name: "write with a wrong key, by the second", want: ignored, do: losesSecond(bySecond(func(_ context.Context, s *session, q *peer.QP) error {
		return q.Write(s.Remote.RMB, 0x00770077, make([]byte, 100))
	}))},

	{name: "CONFIRM LINK again", want: ignored, do: inOrder(bySecond(repeatsConfirm(0, 0)), opensAnother)},
	{name: "CONFIRM LINK of the second by the first", want: ignored, do: outOfStep(losesFirst(byFirst(repeatsConfirm(0, 0))))},
	{name: "CONFIRM LINK of the wrong side", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(peer.Response, 0))))},
	{name: "CONFIRM LINK of another link", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(0, 29, 99))))},
	{name: "CONFIRM LINK of the first link's number", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(0, 29, 1))))},
	{name: "CONFIRM LINK of another queue pair", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(0, 26, 9))))},
	{name: "CONFIRM LINK of another GID", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(0, 10, 9))))},
	{name: "CONFIRM LINK of another MAC", want: ignored, do: outOfStep(losesSecond(bySecond(repeatsConfirm(0, 4, 9))))},

	{name: "ADD LINK of a third link", want: ignored, do: inOrder(byEach(3, offersThird), opensAnother)},
	{name: "ADD LINK, answered", want: ignored, do: inOrder(byEach(5, posts(peer.LLC(peer.AddLink, peer.Response, make([]byte, 40)...), peer.LLC(peer.AddLink, 0xff))), opensAnother)},
	{name: "DELETE LINK of an unknown link", want: ignored, do: byEach(20, asks(peer.Response, 0, peer.LLC(peer.DeleteLink, 0, unknownLink...)))},
	{name: "DELETE LINK, answered", want: ignored, do: byEach(5, posts(peer.LLC(peer.DeleteLink, peer.Response, theLink...), peer.LLC(peer.DeleteLink, peer.Response|peer.AllLinks)))},
	{name: "DELETE LINK of the second twice", want: ignored, do: inOrder(deletesTwice, opensAnother)},
	{name: "DELETE LINK of the first by itself", want: ignored, do: inOrder(deletesItself, opensAnother)},
	{name: "DELETE LINK of each by itself", want: lost, do: byEach(1, deletesItselfBy)},
	{name: "DELETE LINK of all by the second", want: lost, do: bySecond(posts(peer.LLC(peer.DeleteLink, peer.AllLinks)))},
	{name: "DELETE LINK of all by each", want: lost, do: byEach(2, posts(peer.LLC(peer.DeleteLink, peer.AllLinks)))},
}

// twoLinks2 are cases of version 2 alone.
var twoLinks2 = []connCase{
	{name: "ADD LINK CONT by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts(peer.Continuation(0, 2, nil)))))},
	{name: "REQUEST ADD LINK", want: ignored, do: inOrder(byEach(30, asks(peer.Response, 0, peer.LLC(peer.RequestAddLink, 0, make([]byte, 56)...))), opensAnother)},
	{name: "REQUEST ADD LINK of 255 addresses that are not there", want: ignored, do: outOfStep(losesSecond(bySecond(posts(peer.LLC(peer.RequestAddLink, 0, append(make([]byte, 20), 255)...)))))},
	{name: "ADD LINK with half an extension, by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts(sized(peer.AddLink, 60, 60)))))},
}

// twoLinks1 are cases of version 1 alone.
var twoLinks1 = []connCase{
	{name: "ADD LINK CONT", want: ignored, do: inOrder(byEach(10, posts(peer.Continuation(0, 2, nil), peer.Continuation(peer.Response, 1, make([]byte, 32)))), opensAnother)},
	{name: "REQUEST ADD LINK by the second", want: ignored, do: outOfStep(losesSecond(bySecond(posts(append([]byte{5, peer.MsgLength}, make([]byte, 42)...)))))},
}

// openTwoLinks is openLinked for cases that begin with two links.
func openTwoLinks(t *testing.T, third byte) *env {
	s := openLinked(t, third)
	s.linked = true
	return s
}

// TestTwoLinks has peers with two links send the LLC messages of twoLinks.
func TestTwoLinks(t *testing.T) { openTwoLinks(t, 36).run(t, 36, twoLinks) }

// TestTwoLinksV2 has messages that version 2 alone has.
func TestTwoLinksV2(t *testing.T) { openTwoLinks(t, 38).run(t, 38, twoLinks2) }

// TestTwoLinksV1 has version 1.
func TestTwoLinksV1(t *testing.T) {
	s := openLinkedV1(t, 40)
	s.linked = true
	s.run(t, 40, twoLinks)
	s.run(t, 42, twoLinks1)
}

// TestOperatorDeletes has an operator of our host delete one of two links: the peer gets that as the reason, and that the link worked.
func TestOperatorDeletes(t *testing.T) {
	s := openLinked(t, 77)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g, c := s.openBoth(ctx, t, peer.Address(77, byte(i+1)), server)
			id, err := g.ID(ctx)
			if err != nil {
				t.Fatal(err)
			}
			guest.Run(t, fmt.Sprintf("smcr link delete %s %02x", id, g.Link))
			err = peer.InTurn(ctx, func(ctx context.Context) error { return g.LoseLink(ctx, g.QP) },
				func(context.Context) error { return g.DeletedFor(peer.ByOperator, true) },
				func(ctx context.Context) error { return c.Exchange(ctx, 5000) }, g.UseNewConn, c.Close)
			if err != nil {
				t.Error(err)
			}
		})
	}
}
