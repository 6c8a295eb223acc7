// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// The cases here begin with one link. A server adds the second one when it wants; our server has asked for it when the case begins.

// offers is the exchange of ADD LINK, up to CONFIRM LINK.
func offers(ctx context.Context, s *session) error {
	_, err := s.Group.OfferLink(ctx, nil)
	if err != nil {
		return err
	}
	return s.Group.ExchangeKeys(ctx)
}

// offersWith is offers with another ADD LINK of the peer.
func offersWith(change func(s *session, msg []byte) []byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		_, err := s.Group.OfferLink(ctx, func(msg []byte) []byte { return change(s, msg) })
		return err
	}
}

// withBytes changes bytes of ADD LINK.
func withBytes(at int, b ...byte) func(*session, []byte) []byte {
	return func(_ *session, msg []byte) []byte { return peer.With(msg, at, b...) }
}

// withPairs replaces the keys in an ADD LINK of version 2, and states another number of them.
func withPairs(count uint16, pairs []byte) func(*session, []byte) []byte {
	return func(_ *session, msg []byte) []byte {
		msg = peer.LLC(msg[0], msg[3], append(bytes.Clone(msg[4:72]), pairs...)...)
		binary.LittleEndian.PutUint16(msg[70:], count)
		return msg
	}
}

// unknownPairs are keys of RMBs that our module does not know.
func unknownPairs(n int) (all []byte) {
	for i := range n {
		all = append(all, peer.Pair(0x55000000+uint32(i), 0x66000000+uint32(i), uint64(i)<<20)...)
	}
	return all
}

// keys exchanges keys, which only version 1 does after ADD LINK.
func keys(ctx context.Context, s *session) error { return s.Group.ExchangeKeys(ctx) }

// confirmsOnly is the exchange of CONFIRM LINK.
func confirmsOnly(ctx context.Context, s *session) error { return s.Group.ConfirmSecond(ctx) }

// confirms is the exchange of CONFIRM LINK. Then the connection uses the second link for a while.
func confirms(ctx context.Context, s *session) error {
	return inOrder(confirmsOnly, moves, exchanges, moves)(ctx, s)
}

// refusesOffer checks that our client refuses an ADD LINK.
func refusesOffer(change func(s *session, msg []byte) []byte) func(context.Context, *session) error {
	return inOrder(func(ctx context.Context, s *session) error {
		answer, err := s.Group.OfferLink(ctx, func(msg []byte) []byte { return change(s, msg) })
		if err == nil && answer[3]&peer.AllLinks == 0 {
			err = fmt.Errorf("ADD LINK is accepted: %x", answer)
		}
		s.Group.Drop(s.Group.Second.QP)
		return err
	}, opensAnother)
}

// refusedOrGivenUp checks that our client refuses an ADD LINK, or that our module deletes the link some time later.
func refusedOrGivenUp(change func(s *session, msg []byte) []byte) func(context.Context, *session) error {
	return inOrder(func(ctx context.Context, s *session) error {
		answer, err := s.Group.OfferLink(ctx, func(msg []byte) []byte { return change(s, msg) })
		if err != nil {
			return err
		}
		if answer[3]&peer.AllLinks != 0 {
			s.Group.Drop(s.Group.Second.QP)
			return nil
		}
		s.Group.Locked(func() { s.Group.RefuseLinks = true })
		return s.Group.LoseLink(ctx, s.Group.Second.QP)
	}, opensAnother)
}

// confirmsSecond sends CONFIRM LINK for the new link, by that, with changed flags and bytes.
func confirmsSecond(flags byte, at int, b ...byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		if !s.Group.Server {
			if _, err := s.Group.TakeBy(ctx, s.Group.Second.QP, peer.ConfirmLink, 0); err != nil {
				return err
			}
		}
		return bySecond(repeatsConfirm(flags, at, b...))(ctx, s)
	}
}

// keyless takes steps after which the RMB of the open connection has no key on the new link, and then confirms that: our module deletes
// it, because the connection could not go on by it.
func keyless(steps ...func(context.Context, *session) error) func(context.Context, *session) error {
	return outOfStep(losesSecond(append(steps, confirmsSecond(0, 0))...))
}

// keyMeanwhile sends CONFIRM RKEY, which our module answers at once.
func keyMeanwhile(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, peer.Prompt)
	defer cancel()
	return byFirst(confirmsSpare(1, peer.LinkKey{Link: s.Group.Second.Link, Rkey: 7, Addr: 7}))(ctx, s)
}

// deletesKeyMeanwhile deletes the RMB of keyMeanwhile, which our module knows once.
func deletesKeyMeanwhile(ctx context.Context, s *session) error {
	msg := peer.LLC(peer.DeleteRkey, 0, binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, spare.Rkey)...)
	return inOrder(byFirst(asks(peer.Response, peer.Negative, msg)), byFirst(asks(peer.Response|peer.Negative, 0, msg)))(ctx, s)
}

// briefly waits a short time for a message that may not come.
func briefly(ctx context.Context, s *session, kind, flags byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := s.Group.Take(ctx, kind, flags)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// sendsBack sends the first 44 bytes of ADD LINK back, as a stock client does whose port is lost, and then the answer.
func sendsBack(ctx context.Context, s *session) error {
	offer, err := s.Group.Take(ctx, peer.AddLink, 0)
	if err != nil {
		return err
	}
	if err := s.Group.Send(ctx, peer.With(offer[:peer.MsgLength], 3, offer[3]|peer.Response)); err != nil {
		return err
	}
	return s.Group.AnswerOffer(ctx, offer, func(msg []byte) []byte { return msg })
}

// asksAgain checks whether our server asks for another link soon after one has failed.
func asksAgain(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	m, err := s.Group.Take(ctx, peer.AddLink, 0)
	if err == nil {
		return fmt.Errorf("our module asks for another link at once: %x", m)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// asksOften has a server send one ADD LINK after the other, which our client answers with a new link of its own no more than once a
// second, after the first few. Later it takes one again.
func asksOften(ctx context.Context, s *session) error {
	g, start := s.Group, time.Now()
	for taken := 0; ; taken++ {
		if limit := 6 + int(time.Since(start)/time.Second); taken > limit {
			return fmt.Errorf("our module has taken %d links in %v", taken, time.Since(start))
		}
		g.NewSecond(2)
		answer, err := g.OfferLink(ctx, nil)
		if err != nil {
			return err
		}
		if answer[3]&peer.AllLinks != 0 {
			break
		}
	}
	for {
		g.NewSecond(2)
		answer, err := g.OfferLink(ctx, nil)
		if err != nil || answer[3]&peer.AllLinks == 0 {
			return err
		}
	}
}

// nakConfirm has the peer's new adapter refuse whatever comes, from before our module knows it.
func nakConfirm(s *session, msg []byte) []byte {
	s.Group.Second.SetManner(peer.Hostile)
	return msg
}

// addsByNew sends ADD LINK by the link that is being added. Our module may forget that link, or delete it later.
func addsByNew(ctx context.Context, s *session) error {
	g := s.Group
	if err := g.Post(g.Second.QP, peer.With(g.AddLinkMessage(0), 31, 3)); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, 7*time.Second)
	defer cancel()
	_, err := g.Take(limited, peer.DeleteLink, 0)
	g.Drop(g.Second.QP)
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return opensAnother(ctx, s)
}

// addedLinks are peers that add a second link, in both roles and versions.
var addedLinks = []connCase{
	{name: "no CONFIRM LINK", want: ignored, do: losesSecond(offers, keyMeanwhile)},
	{name: "CONFIRM LINK of the wrong side", want: ignored, do: losesSecond(offers, confirmsSecond(peer.Response, 0))},
	{name: "CONFIRM LINK of another link", want: ignored, do: losesSecond(offers, confirmsSecond(0, 29, 99))},
	{name: "CONFIRM LINK of the first link's number", want: ignored, do: losesSecond(offers, confirmsSecond(0, 29, 1))},
	{name: "CONFIRM LINK of another queue pair", want: ignored, do: losesSecond(offers, confirmsSecond(0, 26, 9))},
	{name: "CONFIRM LINK of another GID", want: ignored, do: losesSecond(offers, confirmsSecond(0, 10, 9))},
	{name: "CONFIRM LINK of another MAC", want: ignored, do: losesSecond(offers, confirmsSecond(0, 4, 9))},
	{name: "CONFIRM LINK by the first link", want: lost, do: inOrder(offers, byFirst(repeatsConfirm(0, 0)))},
	{name: "CONFIRM LINK twice", want: ignored, do: inOrder(offers, confirms, bySecond(repeatsConfirm(0, 0)), bySecond(repeatsConfirm(0, 0)), opensAnother)},
	{name: "NAK for CONFIRM LINK", want: ignored, do: losesSecond(offersWith(nakConfirm), keys, func(_ context.Context, s *session) error {
		if s.Group.Server {
			return s.Group.Post(s.Group.Second.QP, peer.ConfirmLinkOf(s.Group.Second.QP, 0, s.Group.Second.Link))
		}
		return nil
	})},
	{name: "MAC that CONFIRM LINK does not repeat", want: ignored, do: losesSecond(offersWith(withBytes(4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)), keys, confirmsSecond(0, 0))},
	{name: "queue pair 0", want: ignored, do: refusedOrGivenUp(withBytes(28, 0, 0, 0))},
	{name: "GID that nobody has", want: ignored, do: refusedOrGivenUp(withBytes(24, 192, 0, 2, 1))},
	{name: "TEST LINK by the new link", want: ignored, do: inOrder(offers, bySecond(posts(peer.LLC(peer.TestLink, 0))), confirms, opensAnother)},
	{name: "validation by the new link", want: ignored, do: inOrder(offers, bySecond(validates(func(m *peer.CDC) { m.Seq -= 2 })), confirms, opensAnother)},
	{name: "CONFIRM RKEY meanwhile", want: ignored, do: inOrder(offers, keyMeanwhile, confirms, opensAnother)},
	{name: "DELETE RKEY meanwhile", want: ignored, do: inOrder(offers, keyMeanwhile, deletesKeyMeanwhile, confirms, opensAnother)},
	{name: "DELETE LINK of the new link", want: ignored, do: inOrder(offers, bySecond(deletes), opensAnother)},
	{name: "DELETE LINK of the first link", want: lost, do: inOrder(offers, byFirst(deletesItselfBy))},
	{name: "DELETE LINK of all", want: lost, do: inOrder(offers, byFirst(posts(peer.LLC(peer.DeleteLink, peer.AllLinks))))},
	{name: "DELETE LINK of unknown links", want: ignored, do: inOrder(offers, byFirst(posts(slices.Repeat([][]byte{peer.LLC(peer.DeleteLink, 0, unknownLink...)}, 10)...)), confirms, opensAnother)},
}

// addedLinksByRole are cases of clients or servers alone.
var addedLinksByRole = []connCase{
	{name: "ADD LINK without an MTU", serverOnly: true, want: ignored, do: refusesOffer(withBytes(32, 0))},
	{name: "ADD LINK with MTU code 15", serverOnly: true, want: ignored, do: refusesOffer(withBytes(32, 15))},
	{name: "ADD LINK of link 0", serverOnly: true, want: ignored, do: refusesOffer(withBytes(31, 0))},
	{name: "ADD LINK of the first link's number", serverOnly: true, want: ignored, do: refusesOffer(withBytes(31, 1))},
	{name: "ADD LINK with the flag of a refusal", serverOnly: true, want: ignored, do: refusesOffer(withBytes(3, peer.AllLinks|0x0f))},
	{name: "ADD LINK again with another link", serverOnly: true, want: ignored, do: inOrder(offers, func(ctx context.Context, s *session) error {
		s.Group.NewSecond(3)
		return offers(ctx, s)
	}, confirms, opensAnother)},
	{name: "ADD LINK 30 times", serverOnly: true, want: ignored, do: losesSecond(func(_ context.Context, s *session) error {
		s.Group.NewSecond(2)
		return s.Group.Post(s.Group.QP, slices.Repeat([][]byte{s.Group.AddLinkMessage(0)}, 30)...)
	})},
	{name: "ADD LINK often", serverOnly: true, want: ignored, do: inOrder(asksOften, keys, confirms, opensAnother)},
	{name: "ADD LINK by the new link", serverOnly: true, want: ignored, do: inOrder(offers, addsByNew)},

	{name: "no answer to ADD LINK", clientOnly: true, want: ignored, do: opensAnother},
	{name: "answer without an MTU", clientOnly: true, want: ignored, do: losesSecond(offersWith(withBytes(32, 0)))},
	{name: "answer with MTU code 15", clientOnly: true, want: ignored, do: losesSecond(offersWith(withBytes(32, 15)))},
	{name: "answer of another link", clientOnly: true, want: ignored, do: inOrder(offersWith(withBytes(31, 99)), opensAnother)},
	{name: "answer of link 0", clientOnly: true, want: ignored, do: inOrder(offersWith(withBytes(31, 0)), opensAnother)},
	{name: "answer of the first link's number", clientOnly: true, want: ignored, do: inOrder(offersWith(withBytes(31, 1)), opensAnother)},
	{name: "refusal for an odd reason", clientOnly: true, want: ignored, do: inOrder(offersWith(withBytes(2, 0, peer.Response|peer.AllLinks|0x0f)), opensAnother)},
	{name: "ADD LINK of a client", clientOnly: true, want: ignored, do: inOrder(offers, byFirst(offersThird), confirms, opensAnother)},
	{name: "CONFIRM LINK before it is asked for", clientOnly: true, want: ignored, do: inOrder(offersWith(withBytes(0)), bySecond(repeatsConfirm(0, 0)), keys, confirms, opensAnother)},
	{name: "NAK for CONFIRM LINK, and another ADD LINK", clientOnly: true, want: ignored, do: inOrder(offersWith(nakConfirm), keys, func(ctx context.Context, s *session) error {
		return s.Group.LoseLink(ctx, s.Group.Second.QP)
	}, asksAgain)},
}

// addedLinks2 are cases of version 2 alone.
var addedLinks2 = []connCase{
	{name: "255 keys of unknown RMBs", want: ignored, do: keyless(offersWith(withPairs(255, unknownPairs(255))))},
	{name: "255 keys that are not there", want: ignored, do: keyless(offersWith(withPairs(255, nil)))},
	{name: "65535 keys, of which one is there", want: ignored, do: keyless(offersWith(withPairs(65535, unknownPairs(1))))},
	{name: "no keys, of which 3 are there", want: ignored, do: keyless(offersWith(withPairs(0, unknownPairs(3))))},
	{name: "more keys than a group has RMBs", want: ignored, do: keyless(offersWith(withPairs(500, unknownPairs(500))))},
	{name: "without the extension", want: ignored, do: keyless(offersWith(func(_ *session, msg []byte) []byte {
		return peer.LLC(msg[0], msg[3], msg[4:peer.MsgLength]...)
	}))},
	{name: "no keys", want: ignored, do: keyless(offersWith(withPairs(0, nil)))},
	{name: "half an extension", want: lost, do: func(ctx context.Context, s *session) error {
		if !s.Group.Server {
			return offersWith(func(_ *session, msg []byte) []byte { return peer.LLC(msg[0], msg[3], msg[4:60]...) })(ctx, s)
		}
		s.Group.NewSecond(2)
		return s.Group.Post(s.Group.QP, peer.LLC(peer.AddLink, 0, s.Group.AddLinkMessage(0)[4:60]...))
	}},
	{name: "REQUEST ADD LINK 20 times", want: ignored, do: inOrder(offers, byFirst(func(ctx context.Context, s *session, q *peer.QP) error {
		for range 20 {
			if err := asks(peer.Response, 0, peer.LLC(peer.RequestAddLink, 0, make([]byte, 56)...))(ctx, s, q); err != nil {
				return err
			}
		}
		return nil
	}), confirms, opensAnother)},
	{name: "ADD LINK sent back before the answer", clientOnly: true, want: ignored, do: inOrder(sendsBack, confirms, opensAnother)},
	{name: "answer twice", clientOnly: true, want: ignored, do: inOrder(offers, func(ctx context.Context, s *session) error {
		return s.Group.Send(ctx, s.Group.AddLinkMessage(peer.Response))
	}, confirms, opensAnother)},
	{name: "ADD LINK CONT", want: lost, do: inOrder(offers, byFirst(posts(peer.Continuation(0, 2, nil))))},
}

// continues sends an ADD LINK CONTINUATION, and waits for the next one of our module.
func continues(link byte, pairs []byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		flags := byte(0)
		if s.Group.Server {
			flags = peer.Response
		}
		if !s.Group.Server {
			if _, err := s.Group.Take(ctx, peer.AddLinkCont, flags); err != nil {
				return err
			}
		}
		err := s.Group.Send(ctx, peer.Continuation(flags^peer.Response, link, pairs))
		if err == nil && s.Group.Server {
			_, err = s.Group.Take(ctx, peer.AddLinkCont, flags)
		}
		return err
	}
}

// withoutEnd sends ADD LINK CONTINUATION with more keys to come for as long as our module answers. All of them together have the time of
// one answer.
func withoutEnd(ctx context.Context, s *session) error {
	for begun := time.Now(); time.Since(begun) < 5*time.Second; {
		limited, cancel := context.WithTimeout(ctx, 3*time.Second)
		err := continues(s.Group.Second.Link, unknownPairs(255))(limited, s)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return errors.New("our module goes on after 5 s")
}

// withoutKeys offers a link, and exchanges no keys.
var withoutKeys = offersWith(withBytes(0))

// addedLinks1 are cases of version 1 alone, most of them about ADD LINK CONTINUATION.
var addedLinks1 = []connCase{
	{name: "no ADD LINK CONT", want: ignored, do: losesSecond(withoutKeys)},
	{name: "ADD LINK CONT without end", clientOnly: true, want: ignored, do: losesSecond(withoutKeys, withoutEnd)},
	{name: "ADD LINK CONT for as long as it is answered", serverOnly: true, want: ignored, do: losesSecond(withoutKeys, func(ctx context.Context, s *session) error {
		for range 100 {
			limited, cancel := context.WithTimeout(ctx, time.Second)
			err := continues(2, unknownPairs(255))(limited, s)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			if err != nil {
				return err
			}
		}
		return nil
	})},
	{name: "ADD LINK CONT with more keys than come", want: ignored, do: keyless(withoutKeys, func(ctx context.Context, s *session) error {
		return inOrder(continues(s.Group.Second.Link, unknownPairs(255)), continues(s.Group.Second.Link, nil))(ctx, s)
	})},
	{name: "ADD LINK CONT without keys", want: ignored, do: keyless(withoutKeys, func(ctx context.Context, s *session) error {
		return continues(s.Group.Second.Link, nil)(ctx, s)
	})},
	{name: "ADD LINK CONT for another link", serverOnly: true, want: ignored, do: inOrder(withoutKeys, func(ctx context.Context, s *session) error {
		if err := s.Group.Send(ctx, peer.Continuation(0, 99, unknownPairs(1))); err != nil {
			return err
		}
		return briefly(ctx, s, peer.AddLinkCont, peer.Response)
	}, keys, confirms, opensAnother)},
	{name: "ADD LINK CONT by the wrong side", serverOnly: true, want: ignored, do: inOrder(withoutKeys, func(ctx context.Context, s *session) error {
		if err := s.Group.Send(ctx, peer.Continuation(peer.Response, 2, unknownPairs(1))); err != nil {
			return err
		}
		return briefly(ctx, s, peer.AddLinkCont, peer.Response)
	}, keys, confirms, opensAnother)},
	{name: "ADD LINK CONT by the new link", want: ignored, do: inOrder(offers, bySecond(posts(peer.Continuation(0, 2, nil), peer.Continuation(peer.Response, 2, nil))), confirms, opensAnother)},
}

// TestAddedLinks has peers in both roles add a second link as addedLinks has it.
func TestAddedLinks(t *testing.T) { openLinked(t, 52).run(t, 52, addedLinks) }

// TestAddedLinksByRole has clients and servers send what the other role cannot.
func TestAddedLinksByRole(t *testing.T) { openLinked(t, 54).run(t, 54, addedLinksByRole) }

// TestAddedLinksV2 has messages that version 2 alone has.
func TestAddedLinksV2(t *testing.T) { openLinked(t, 56).run(t, 56, addedLinks2) }

// TestAddedLinksV1 is TestAddedLinks with version 1.
func TestAddedLinksV1(t *testing.T) { openLinkedV1(t, 58).run(t, 58, addedLinks) }

// TestAddedLinksByRoleV1 is TestAddedLinksByRole with version 1.
func TestAddedLinksByRoleV1(t *testing.T) { openLinkedV1(t, 60).run(t, 60, addedLinksByRole) }

// TestContinuations has messages that version 1 alone has.
func TestContinuations(t *testing.T) { openLinkedV1(t, 62).run(t, 62, addedLinks1) }
