// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// sized is a message that takes, and says that it takes, other lengths than those.
func sized(kind byte, length, says int) []byte {
	m := make([]byte, length)
	copy(m, []byte{kind, byte(says), byte(says >> 8)})
	return m
}

// optionalTypes are messages of all types that a receiver need not know: the two highest bits are 10.
func optionalTypes(ctx context.Context, s *session) error {
	for kind := 0x80; kind < 0xc0; kind++ {
		m := llcMessage(byte(kind), 0, 1, 2, 3, 4)
		if err := s.g.says(ctx, m, append(bytes.Clone(m[:3]), bytes.Repeat([]byte{0xff}, 41)...), m[:1]); err != nil {
			return fmt.Errorf("type %#x: %w", kind, err)
		}
	}
	return nil
}

// responses are answers to what nobody has asked. They may be late.
func responses(ctx context.Context, s *session) error {
	if err := s.g.says(ctx, llcMessage(requestAddLink, response)); err != nil {
		return err
	}
	for _, kind := range []byte{addLink, deleteLink, confirmRkey, deleteRkey} {
		for _, flags := range []byte{response, 0xff} {
			if err := s.g.says(ctx, llcMessage(kind, flags, bytes.Repeat([]byte{0xff}, 40)...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// confirmsAgain sends CONFIRM LINK, which came at first contact, once more with some bytes changed.
func confirmsAgain(at int, b ...byte) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		flags := byte(response)
		if s.g.server {
			flags = 0
		}
		return s.g.qp.Send(peer.With(s.g.confirmLinkMessage(flags, 1), at, b...))
	}
}

// rejected checks that an ADD LINK of so many pairs is answered by a refusal, whatever there is of them.
func rejected(count, there int) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		body := make([]byte, 68+16*there)
		body[27], body[28] = 2, mtuCode
		binary.LittleEndian.PutUint16(body[66:], uint16(count))
		answer, err := s.g.asks(ctx, llcMessage(addLink, 0, body...))
		if err == nil && (answer[3]&all == 0 || len(answer) != msgLength) {
			err = fmt.Errorf("ADD LINK is answered by %x", answer)
		}
		return err
	}
}

// manyKeys tells of more RMBs than a group has places for, and withdraws them again.
func manyKeys(ctx context.Context, s *session) error {
	refused := 0
	for i := range uint32(256) {
		answer, err := s.g.asks(ctx, confirmRkeyMessage(&peer.Region{Rkey: 0x77000000 + i, Addr: 1 << 50}))
		if err != nil {
			return err
		}
		if answer[3]&negative != 0 {
			refused++
		}
	}
	if refused == 0 || refused > 3 {
		return fmt.Errorf("%d of 256 keys are refused", refused)
	}
	for i := range uint32(256) {
		key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, 0x77000000+i)
		if _, err := s.g.asks(ctx, llcMessage(deleteRkey, 0, key...)); err != nil {
			return err
		}
	}
	return nil
}

// answersNothing asks, and does not acknowledge the answers.
func answersNothing(n int, m peer.Manner) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		s.g.qp.SetManner(m)
		for range n {
			if err := s.g.qp.Send(llcMessage(testLink, 0)); err != nil {
				return err
			}
		}
		return nil
	}
}

// answered checks that a message is answered with these flags, and others not set.
func answered(flags, not byte, msg []byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		answer, err := s.g.asks(ctx, msg)
		if err == nil && (answer[3]&flags != flags || answer[3]&not != 0 || len(answer) != msgLength) {
			err = fmt.Errorf("%x is answered by %x", msg, answer)
		}
		return err
	}
}

// deletesLink deletes the only link. A client answers; a server deletes it by an exchange of its own.
func deletesLink(ctx context.Context, s *session) error {
	flags := byte(0)
	if s.g.server {
		flags = response
	}
	if err := s.g.says(ctx, llcMessage(deleteLink, 0, theLink...)); err != nil {
		return err
	}
	m, err := s.g.take(ctx, deleteLink, flags)
	if err != nil {
		return err
	}
	reason := binary.BigEndian.Uint32(m[5:])
	switch {
	case m[3]&all != 0 || m[4] != 1:
		return fmt.Errorf("it is about another link: %x", m)
	case s.g.server && reason != 0, !s.g.server && reason != pathLost:
		return fmt.Errorf("its reason is %#x", reason)
	}
	return nil
}

// deletesAll ends the group. A server tells a client that it complies.
func deletesAll(ctx context.Context, s *session) error {
	if err := s.g.qp.Send(llcMessage(deleteLink, all)); err != nil || s.g.server {
		return err
	}
	return s.g.until(ctx, "DELETE LINK of the server", func() bool { return s.g.gone })
}

// TestPeersDeleteOrderly has a client ask for an orderly end of a group with a connection: that goes on, nobody joins the group
// meanwhile, and the server deletes it when the connection is over.
func TestPeersDeleteOrderly(t *testing.T) {
	for i, msg := range [][]byte{
		llcMessage(deleteLink, all|orderly, 0, 0, 2, 0, 0),
		llcMessage(deleteLink, orderly, 1, 0, 2, 0, 0),
	} {
		name := []string{"all", "link"}[i]
		t.Run(name, func(t *testing.T) {
			n := openNetwork(t)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			g := newGroup(t, n, address(1, byte(14+i)), false)
			c, err := g.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			other := g.conn()
			err = inTurn(ctx, func(ctx context.Context) error { return g.says(ctx, msg) },
				func(ctx context.Context) error { return c.exchange(ctx, 100_000) },
				other.begin, other.firstAgain,
				func(ctx context.Context) error { return resets(ctx, other) },
				func(ctx context.Context) error { return c.exchange(ctx, 1000) }, c.close)
			if err != nil {
				t.Fatal(err)
			}
			if name == "all" {
				err = g.until(ctx, "DELETE LINK of the server", func() bool { return g.gone })
			} else {
				_, err = g.take(ctx, deleteLink, 0)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// operatorsWish is the reason of a DELETE LINK that an operator has asked for.
const operatorsWish = 0x00020000

// TestPeersDeleteByOperator has an operator end a group whose server is our module. The server names the link, and keeps its queue
// pair until the client has answered: what the client writes before that arrives.
func TestPeersDeleteByOperator(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 16), false)
	g.keepLink = true
	c, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.hangUp()
	deleted := make(chan error, 1)
	go func() {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", "smcr linkgroup delete $(smcr linkgroup | awk '/SERV/ { print $1 }')").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("smcr: %w: %s", err, out)
		}
		deleted <- err
	}()
	m, err := g.take(ctx, deleteLink, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m[3]&all != 0 || m[3]&orderly == 0 || m[4] != 1 || binary.BigEndian.Uint32(m[5:]) != operatorsWish {
		t.Errorf("not a DELETE LINK for the link, by an operator: %x", m)
	}
	err = inTurn(ctx, func(context.Context) error { return c.put([]byte("too late")) }, g.qp.Flush)
	if err != nil {
		t.Errorf("before the client has answered: %v", err)
	}
	g.set(g.complies)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	if err := c.app.wait(ctx); err != nil {
		t.Error(err)
	}
}

// TestPeersDeleteBehind has a server end a group while a send queue of four work requests is full, and more answers wait for room
// than the queue has. DELETE LINK comes last, and arrives all the same.
func TestPeersDeleteBehind(t *testing.T) {
	const queue, waiting = 4, 12
	offer(t, fmt.Sprintf("qp_wr=%d", queue+1))
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(1, 17), false)
	c, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.hangUp()
	g.qp.SetManner(peer.Silent)
	var msgs [][]byte
	for range queue + waiting {
		msgs = append(msgs, llcMessage(testLink, 0))
	}
	if err := g.says(ctx, append(msgs, llcMessage(deleteLink, all))...); err != nil {
		t.Fatal(err)
	}
	// Our module has destroyed nothing yet, as it waits for the queue.
	if err := c.app.wait(ctx); err != nil {
		t.Fatal(err)
	}
	g.qp.SetManner(peer.Polite)
	if err := g.until(ctx, "DELETE LINK of the server", func() bool { return g.gone }); err != nil {
		t.Error(err)
	}
}

// firstAgain waits for the ACCEPT of a first contact, whatever group there is.
func (c *conn) firstAgain(ctx context.Context) error {
	m, err := c.tcp.Message(ctx, peer.Accept)
	if err == nil && m[7]&8 == 0 {
		err = fmt.Errorf("the connection joins the group that is to end: %x", m)
	}
	return err
}

// deletesInUse deletes the RMB of a connection that lives, and sends something that the application would send back. A write
// to the RMB would break the link.
func deletesInUse(ctx context.Context, s *session) error {
	key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, s.rmb.Rkey)
	if err := answered(response, negative, llcMessage(deleteRkey, 0, key...))(ctx, s); err != nil {
		return err
	}
	s.g.qp.Forget(s.rmb)
	if err := s.put([]byte("hello")); err != nil {
		return err
	}
	return s.tell(ctx)
}

// reassigns gives the RMB of a connection that lives to another one, which works.
func reassigns(ctx context.Context, s *session) error {
	c := s.g.conn()
	c.rmb = s.rmb
	c.us.Rkey, c.us.RMB = s.us.Rkey, s.us.RMB
	return inTurn(ctx, c.begin, c.confirm, c.settle, s.app.wait,
		func(ctx context.Context) error { return c.exchange(ctx, 100_000) }, c.close)
}

// claims has somebody else, who gives the peer's identity, name the RMB of a connection that lives. That needs no RDMA.
func claims(ctx context.Context, s *session) error {
	c := s.g.conn()
	c.us.Rkey, c.us.RMB = s.us.Rkey, s.us.RMB
	c.tcp = s.g.n.NewTCP(netip.AddrPortFrom(address(1, 240), c.tcp.Self.Port()))
	if s.g.server {
		return inTurn(ctx, c.begin, c.answer, func(ctx context.Context) error { return c.declined(ctx, reasonToken) })
	}
	if err := inTurn(ctx, c.begin, c.accepted); err != nil {
		return err
	}
	if err := c.answer(ctx); err != nil && !errors.Is(err, peer.ErrReset) {
		return err
	}
	return broken(ctx, c)
}

const pathLost = 0x10000

var (
	unknownLink = []byte{77, 0, 1, 0, 0}
	theLink     = []byte{1, 0, 1, 0, 0}
)

// llcs are messages that a peer may, or may not, send about the link group.
var llcs = []behaviour{
	{name: "unknown types that are optional", want: ignored, do: optionalTypes},
	{name: "unknown type 2a", want: lost, do: raw(llcMessage(0x2a, 0))},
	{name: "unknown type 0", want: lost, do: raw(llcMessage(0, 0))},
	{name: "unknown type 7f", want: lost, do: raw(llcMessage(0x7f, 0))},
	{name: "unknown type c1", want: lost, do: raw(llcMessage(0xc1, 0))},
	{name: "nothing", want: lost, do: raw([]byte{})},
	{name: "1 byte", want: lost, do: raw(sized(testLink, 1, 1))},
	{name: "43 bytes", want: lost, do: raw(sized(testLink, 43, 43))},
	{name: "44 bytes that say 43", want: lost, do: raw(sized(testLink, 44, 43))},
	{name: "44 bytes that say 8192", want: lost, do: raw(sized(confirmRkey, 44, 8192))},
	{name: "1024 bytes that say 65535", want: lost, do: raw(sized(deleteRkey, 1024, 0xffff))},
	{name: "1024 bytes that say 44", want: ignored, do: answered(response, 0, sized(testLink, 1024, 44))},
	{name: "ADD LINK with half an extension", want: lost, do: raw(sized(addLink, 60, 60))},
	{name: "longer than any", want: lost, do: raw(make([]byte, 8193))},
	{name: "much longer than any", want: lost, do: raw(make([]byte, 100_000))},
	{name: "TEST LINK of version 1", want: lost, do: raw(peer.With(make([]byte, msgLength), 0, 7, msgLength))},
	{name: "answers without questions", want: ignored, do: responses},
	{name: "answer to a TEST LINK that was not sent", want: lost, do: raw(llcMessage(testLink, response))},
	{name: "CONFIRM LINK again", want: ignored, do: confirmsAgain(0)},
	{name: "CONFIRM LINK of another link", want: lost, do: confirmsAgain(29, 99)},
	{name: "CONFIRM LINK of another queue pair", want: lost, do: confirmsAgain(26, 9)},
	{name: "CONFIRM LINK of another GID", want: lost, do: confirmsAgain(10, 9)},
	{name: "CONFIRM LINK of another MAC", want: lost, do: confirmsAgain(4, 9)},
	{name: "the other order of bytes", want: ignored, do: func(ctx context.Context, s *session) error {
		m := llcMessage(testLink, 0)
		m[1], m[2] = m[2], m[1]
		return answered(response, 0, m)(ctx, s)
	}},
	{name: "ADD LINK without pairs", want: ignored, do: rejected(0, 0)},
	{name: "ADD LINK with a pair", want: ignored, do: rejected(1, 1)},
	{name: "ADD LINK with 255 pairs", want: ignored, do: rejected(255, 255)},
	{name: "ADD LINK with 255 pairs that are not there", want: ignored, do: rejected(255, 0)},
	{name: "ADD LINK with 65535 pairs that are not there", want: ignored, do: rejected(65535, 1)},
	{name: "ADD LINK, short", want: ignored, do: answered(response|all, 0, llcMessage(addLink, 0))},
	{name: "ADD LINK CONT", want: lost, do: raw(llcMessage(addLinkCont, 0, 1, 255), llcMessage(addLinkCont, response, 1, 255))},
	{name: "REQUEST ADD LINK", want: ignored, do: answered(response, 0, llcMessage(requestAddLink, 0, make([]byte, 56)...))},
	{name: "REQUEST ADD LINK of 255 addresses that are not there", want: lost, do: raw(llcMessage(requestAddLink, 0, append(make([]byte, 20), 255)...))},
	{name: "DELETE LINK of another link", want: ignored, do: answered(response, 0, llcMessage(deleteLink, 0, unknownLink...))},
	{name: "DELETE LINK of this link", want: lost, do: deletesLink},
	{name: "DELETE LINK of this link twice", want: lost, do: raw(llcMessage(deleteLink, 0, theLink...), llcMessage(deleteLink, 0, theLink...))},
	{name: "DELETE LINK of all", want: lost, do: deletesAll},
	{name: "DELETE LINK of all twice", want: lost, do: raw(llcMessage(deleteLink, all), llcMessage(deleteLink, all))},
	{name: "DELETE LINK, answered", want: ignored, do: raw(llcMessage(deleteLink, response, theLink...), llcMessage(deleteLink, response|all))},
	{name: "CONFIRM RKEY of 255 links", want: ignored, do: answered(response|negative, 0, llcMessage(confirmRkey, 0, 255, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of 2 links that are not there", want: ignored, do: answered(response, 0, llcMessage(confirmRkey, 0, 2, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of key 0", want: ignored, do: answered(response, 0, llcMessage(confirmRkey, 0))},
	{name: "CONFIRM RKEY of 256 keys", want: ignored, do: manyKeys},
	{name: "DELETE RKEY of none", want: ignored, do: answered(response, negative, llcMessage(deleteRkey, 0))},
	{name: "DELETE RKEY of an unknown key", want: ignored, do: answered(response|negative, 0, llcMessage(deleteRkey, 0, 1, 0, 0, 0, 9, 9, 9, 9))},
	{name: "DELETE RKEY of keys that are not there", want: lost, do: raw(llcMessage(deleteRkey, 0, 10))},
	{name: "DELETE RKEY of 255 keys", want: ignored, do: answered(response|negative, 0, llcMessage(deleteRkey, 0, append([]byte{255}, bytes.Repeat([]byte{9}, 3+4*255)...)...))},
	{name: "DELETE RKEY of the key in use", want: dead, do: deletesInUse},
	{name: "RMB of a connection that lives for another one", want: dead, do: reassigns},
	{name: "RMB of a connection that lives, by another address", want: ignored, do: claims},
	{name: "RMB of a connection that lives, by another address in the other role", want: ignored, do: claims},
	{name: "TEST LINK 1000 times", want: lost, do: answersNothing(1000, peer.Deaf)},
	{name: "TEST LINK 1000 times, and no room for the answers", want: lost, do: answersNothing(1000, peer.Busy)},
	{name: "TEST LINK, and a NAK for each answer", want: lost, do: answersNothing(1, peer.Hostile)},
}

// TestPeersLLC plays what a peer may say about the link group.
func TestPeersLLC(t *testing.T) {
	openEnv(t, 4).run(t, 4, llcs)
}
