// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// sized is a message of a length, and with a length in it.
func sized(kind byte, length, sendsCDC int) []byte {
	m := make([]byte, length)
	copy(m, []byte{kind, byte(sendsCDC), byte(sendsCDC >> 8)})
	return m
}

// optionalTypes are messages of all types that a receiver may ignore: the two highest bits are 10.
func optionalTypes(ctx context.Context, s *session) error {
	for kind := 0x80; kind < 0xc0; kind++ {
		m := peer.LLC(byte(kind), 0, 1, 2, 3, 4)
		if err := s.Group.Send(ctx, m, append(bytes.Clone(m[:3]), bytes.Repeat([]byte{0xff}, 41)...), m[:1]); err != nil {
			return fmt.Errorf("type %#x: %w", kind, err)
		}
	}
	return nil
}

// responses are responses to requests that our module has not sent. It may take them for late ones.
func responses(ctx context.Context, s *session) error {
	if err := s.Group.Send(ctx, peer.LLC(peer.RequestAddLink, peer.Response)); err != nil {
		return err
	}
	for _, kind := range []byte{peer.AddLink, peer.DeleteLink, peer.ConfirmRkey, peer.DeleteRkey} {
		for _, flags := range []byte{peer.Response, 0xff} {
			if err := s.Group.Send(ctx, peer.LLC(kind, flags, bytes.Repeat([]byte{0xff}, 40)...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// confirmsAgain repeats CONFIRM LINK, which was sent at first contact, with changed bytes.
func confirmsAgain(at int, b ...byte) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		flags := byte(peer.Response)
		if s.Group.Server {
			flags = 0
		}
		return s.Group.QP.Send(peer.With(s.Group.ConfirmLink(flags, 1), at, b...))
	}
}

// rejected checks that ADD LINK with this many RMB pairs is refused, however many are in the message.
func rejected(count, there int) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		body := make([]byte, 68+16*there)
		body[27], body[28] = 2, peer.MTUCode
		binary.LittleEndian.PutUint16(body[66:], uint16(count))
		answer, err := s.Group.Request(ctx, peer.LLC(peer.AddLink, 0, body...))
		if err == nil && (answer[3]&peer.AllLinks == 0 || len(answer) != peer.MsgLength) {
			err = fmt.Errorf("ADD LINK is answered by %x", answer)
		}
		return err
	}
}

// manyKeys sends CONFIRM RKEY for more RMBs than a group has room for, and DELETE RKEY for all of them.
func manyKeys(ctx context.Context, s *session) error {
	refused := 0
	for i := range uint32(256) {
		answer, err := s.Group.Request(ctx, peer.ConfirmRkeyOf(&peer.Region{Rkey: 0x77000000 + i, Addr: 1 << 50}))
		if err != nil {
			return err
		}
		if answer[3]&peer.Negative != 0 {
			refused++
		}
	}
	if refused == 0 || refused > 3 {
		return fmt.Errorf("%d of 256 keys are refused", refused)
	}
	for i := range uint32(256) {
		key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, 0x77000000+i)
		if _, err := s.Group.Request(ctx, peer.LLC(peer.DeleteRkey, 0, key...)); err != nil {
			return err
		}
	}
	return nil
}

// answersNothing sends TEST LINK, and does not acknowledge the responses.
func answersNothing(n int, m peer.Manner) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		s.Group.QP.SetManner(m)
		for range n {
			if err := s.Group.QP.Send(peer.LLC(peer.TestLink, 0)); err != nil {
				return err
			}
		}
		return nil
	}
}

// expectAnswer checks that the response to a message has these flags, and does not have others.
func expectAnswer(flags, not byte, msg []byte) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		answer, err := s.Group.Request(ctx, msg)
		if err == nil && (answer[3]&flags != flags || answer[3]&not != 0 || len(answer) != peer.MsgLength) {
			err = fmt.Errorf("%x is answered by %x", msg, answer)
		}
		return err
	}
}

// deletesLink deletes the only link. A client answers; a server starts an exchange of its own.
func deletesLink(ctx context.Context, s *session) error {
	flags := byte(0)
	if s.Group.Server {
		flags = peer.Response
	}
	if err := s.Group.Send(ctx, peer.LLC(peer.DeleteLink, 0, theLink...)); err != nil {
		return err
	}
	m, err := s.Group.Take(ctx, peer.DeleteLink, flags)
	if err != nil {
		return err
	}
	reason := binary.BigEndian.Uint32(m[5:])
	switch {
	case m[3]&peer.AllLinks != 0 || m[4] != 1:
		return fmt.Errorf("it is about another link: %x", m)
	case s.Group.Server && reason != 0, !s.Group.Server && reason != pathLost:
		return fmt.Errorf("its reason is %#x", reason)
	}
	return nil
}

// deletesAll ends the group. A server confirms that to a client.
func deletesAll(ctx context.Context, s *session) error {
	if err := s.Group.QP.Send(peer.LLC(peer.DeleteLink, peer.AllLinks)); err != nil || s.Group.Server {
		return err
	}
	return s.Group.Until(ctx, "DELETE LINK of the server", func() bool { return s.Group.Gone })
}

// TestDeleteLinkOrderly has a client ask for an orderly end of a group with a connection: that goes on, no connection joins
// the group, and the server deletes the group when the connection is closed.
func TestDeleteLinkOrderly(t *testing.T) {
	for i, msg := range [][]byte{
		peer.LLC(peer.DeleteLink, peer.AllLinks|peer.Orderly, 0, 0, 2, 0, 0),
		peer.LLC(peer.DeleteLink, peer.Orderly, 1, 0, 2, 0, 0),
	} {
		name := []string{"all", "link"}[i]
		t.Run(name, func(t *testing.T) {
			n := peer.OpenRoCE(t)
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, n, peer.Address(1, byte(14+i)), false)
			c, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			other := g.NewConn()
			err = peer.InTurn(ctx, func(ctx context.Context) error { return g.Send(ctx, msg) },
				func(ctx context.Context) error { return c.Exchange(ctx, 100_000) },
				other.Begin, func(ctx context.Context) error { return firstAgain(ctx, other) },
				func(ctx context.Context) error { return resets(ctx, other) },
				func(ctx context.Context) error { return c.Exchange(ctx, 1000) }, c.Close)
			if err != nil {
				t.Fatal(err)
			}
			if name == "all" {
				err = g.Until(ctx, "DELETE LINK of the server", func() bool { return g.Gone })
			} else {
				_, err = g.Take(ctx, peer.DeleteLink, 0)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// operatorsWish is the reason in a DELETE LINK that an operator has asked for.
const operatorsWish = 0x00020000

// TestDeleteLinkByOperator has an operator delete a link group whose server is our module. The server names the link, and
// keeps its queue pair until the client has answered: a write of the client before that arrives.
func TestDeleteLinkByOperator(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 16), false)
	g.KeepDeleteLink = true
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.HangUp()
	deleted := make(chan error, 1)
	go func() {
		out, err := exec.CommandContext(ctx, "/bin/sh", "-c", "smcr linkgroup delete $(smcr linkgroup | awk '/SERV/ { print $1 }')").CombinedOutput()
		if err != nil {
			err = fmt.Errorf("smcr: %w: %s", err, out)
		}
		deleted <- err
	}()
	m, err := g.Take(ctx, peer.DeleteLink, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m[3]&peer.AllLinks != 0 || m[3]&peer.Orderly == 0 || m[4] != 1 || binary.BigEndian.Uint32(m[5:]) != operatorsWish {
		t.Errorf("not a DELETE LINK for the link, by an operator: %x", m)
	}
	err = peer.InTurn(ctx, func(context.Context) error { return c.Put([]byte("too late")) }, g.QP.Flush)
	if err != nil {
		t.Errorf("before the client has answered: %v", err)
	}
	g.Locked(g.AnswerDeleteLink)
	if err := <-deleted; err != nil {
		t.Error(err)
	}
	if err := c.App.Wait(ctx); err != nil {
		t.Error(err)
	}
}

// TestDeleteLinkBehindFullQueue has a server end a group while its send queue of four work requests is full, and more
// responses wait than the queue has entries. DELETE LINK comes last, and arrives.
func TestDeleteLinkBehindFullQueue(t *testing.T) {
	const queue, waiting = 4, 12
	offer(t, fmt.Sprintf("qp_wr=%d", queue+1))
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 17), false)
	c, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.HangUp()
	g.QP.SetManner(peer.Silent)
	var msgs [][]byte
	for range queue + waiting {
		msgs = append(msgs, peer.LLC(peer.TestLink, 0))
	}
	if err := g.Send(ctx, append(msgs, peer.LLC(peer.DeleteLink, peer.AllLinks))...); err != nil {
		t.Fatal(err)
	}
	// Our module has destroyed nothing yet, as it waits for the queue.
	if err := c.App.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	g.QP.SetManner(peer.Polite)
	if err := g.Until(ctx, "DELETE LINK of the server", func() bool { return g.Gone }); err != nil {
		t.Error(err)
	}
}

// firstAgain waits for the ACCEPT of a first contact, although there is a group.
func firstAgain(ctx context.Context, c *peer.Conn) error {
	m, err := c.TCP.Message(ctx, peer.Accept)
	if err == nil && m[7]&8 == 0 {
		err = fmt.Errorf("the connection joins the group that is to end: %x", m)
	}
	return err
}

// deletesInUse sends DELETE RKEY for the RMB of an open connection, and data that the application echoes. Writing to that RMB
// would break the link.
func deletesInUse(ctx context.Context, s *session) error {
	key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, s.RMB.Rkey)
	if err := expectAnswer(peer.Response, peer.Negative, peer.LLC(peer.DeleteRkey, 0, key...))(ctx, s); err != nil {
		return err
	}
	s.Group.QP.Forget(s.RMB)
	if err := s.Put([]byte("hello")); err != nil {
		return err
	}
	return s.SendCDC(ctx)
}

// reassigns gives the RMB of an open connection to another one, which works.
func reassigns(ctx context.Context, s *session) error {
	c := s.Group.NewConn()
	c.RMB = s.RMB
	c.Local.Rkey, c.Local.RMB = s.Local.Rkey, s.Local.RMB
	return peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish, s.App.Wait,
		func(ctx context.Context) error { return c.Exchange(ctx, 100_000) }, c.Close)
}

// claims has another host with the peer's identity name the RMB of an open connection. This takes no RDMA.
func claims(ctx context.Context, s *session) error {
	c := s.Group.NewConn()
	c.Local.Rkey, c.Local.RMB = s.Local.Rkey, s.Local.RMB
	c.TCP = s.Group.Net.NewTCP(netip.AddrPortFrom(peer.Address(1, 240), c.TCP.Self.Port()))
	if s.Group.Server {
		return peer.InTurn(ctx, c.Begin, c.Answer, func(ctx context.Context) error { return c.RecvDecline(ctx, reasonToken) })
	}
	if err := peer.InTurn(ctx, c.Begin, c.RecvAccept); err != nil {
		return err
	}
	if err := c.Answer(ctx); err != nil && !errors.Is(err, peer.ErrReset) {
		return err
	}
	return tcpBroken(ctx, c)
}

const pathLost = 0x10000

var (
	unknownLink = []byte{77, 0, 1, 0, 0}
	theLink     = []byte{1, 0, 1, 0, 0}
)

// llcs are LLC messages, valid or not, on an established link.
var llcs = []connCase{
	{name: "unknown types that are optional", want: ignored, do: optionalTypes},
	{name: "unknown type 2a", want: lost, do: raw(peer.LLC(0x2a, 0))},
	{name: "unknown type 0", want: lost, do: raw(peer.LLC(0, 0))},
	{name: "unknown type 7f", want: lost, do: raw(peer.LLC(0x7f, 0))},
	{name: "unknown type c1", want: lost, do: raw(peer.LLC(0xc1, 0))},
	{name: "nothing", want: lost, do: raw([]byte{})},
	{name: "1 byte", want: lost, do: raw(sized(peer.TestLink, 1, 1))},
	{name: "43 bytes", want: lost, do: raw(sized(peer.TestLink, 43, 43))},
	{name: "44 bytes that say 43", want: lost, do: raw(sized(peer.TestLink, 44, 43))},
	{name: "44 bytes that say 8192", want: lost, do: raw(sized(peer.ConfirmRkey, 44, 8192))},
	{name: "1024 bytes that say 65535", want: lost, do: raw(sized(peer.DeleteRkey, 1024, 0xffff))},
	{name: "1024 bytes that say 44", want: ignored, do: expectAnswer(peer.Response, 0, sized(peer.TestLink, 1024, 44))},
	{name: "ADD LINK with half an extension", want: lost, do: raw(sized(peer.AddLink, 60, 60))},
	{name: "longer than any", want: lost, do: raw(make([]byte, 8193))},
	{name: "much longer than any", want: lost, do: raw(make([]byte, 100_000))},
	{name: "TEST LINK of version 1", want: lost, do: raw(peer.With(make([]byte, peer.MsgLength), 0, 7, peer.MsgLength))},
	{name: "answers without questions", want: ignored, do: responses},
	{name: "answer to a TEST LINK that was not sent", want: lost, do: raw(peer.LLC(peer.TestLink, peer.Response))},
	{name: "CONFIRM LINK again", want: ignored, do: confirmsAgain(0)},
	{name: "CONFIRM LINK of another link", want: lost, do: confirmsAgain(29, 99)},
	{name: "CONFIRM LINK of another queue pair", want: lost, do: confirmsAgain(26, 9)},
	{name: "CONFIRM LINK of another GID", want: lost, do: confirmsAgain(10, 9)},
	{name: "CONFIRM LINK of another MAC", want: lost, do: confirmsAgain(4, 9)},
	{name: "the other order of bytes", want: ignored, do: func(ctx context.Context, s *session) error {
		m := peer.LLC(peer.TestLink, 0)
		m[1], m[2] = m[2], m[1]
		return expectAnswer(peer.Response, 0, m)(ctx, s)
	}},
	{name: "ADD LINK without pairs", want: ignored, do: rejected(0, 0)},
	{name: "ADD LINK with a pair", want: ignored, do: rejected(1, 1)},
	{name: "ADD LINK with 255 pairs", want: ignored, do: rejected(255, 255)},
	{name: "ADD LINK with 255 pairs that are not there", want: ignored, do: rejected(255, 0)},
	{name: "ADD LINK with 65535 pairs that are not there", want: ignored, do: rejected(65535, 1)},
	{name: "ADD LINK, short", want: ignored, do: expectAnswer(peer.Response|peer.AllLinks, 0, peer.LLC(peer.AddLink, 0))},
	{name: "ADD LINK CONT", want: lost, do: raw(peer.LLC(peer.AddLinkCont, 0, 1, 255), peer.LLC(peer.AddLinkCont, peer.Response, 1, 255))},
	{name: "REQUEST ADD LINK", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.RequestAddLink, 0, make([]byte, 56)...))},
	{name: "REQUEST ADD LINK of 255 addresses that are not there", want: lost, do: raw(peer.LLC(peer.RequestAddLink, 0, append(make([]byte, 20), 255)...))},
	{name: "DELETE LINK of another link", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.DeleteLink, 0, unknownLink...))},
	{name: "DELETE LINK of this link", want: lost, do: deletesLink},
	{name: "DELETE LINK of this link twice", want: lost, do: raw(peer.LLC(peer.DeleteLink, 0, theLink...), peer.LLC(peer.DeleteLink, 0, theLink...))},
	{name: "DELETE LINK of all", want: lost, do: deletesAll},
	{name: "DELETE LINK of all twice", want: lost, do: raw(peer.LLC(peer.DeleteLink, peer.AllLinks), peer.LLC(peer.DeleteLink, peer.AllLinks))},
	{name: "DELETE LINK, answered", want: ignored, do: raw(peer.LLC(peer.DeleteLink, peer.Response, theLink...), peer.LLC(peer.DeleteLink, peer.Response|peer.AllLinks))},
	{name: "CONFIRM RKEY of 255 links", want: ignored, do: expectAnswer(peer.Response|peer.Negative, 0, peer.LLC(peer.ConfirmRkey, 0, 255, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of 2 links that are not there", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.ConfirmRkey, 0, 2, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of key 0", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.ConfirmRkey, 0))},
	{name: "CONFIRM RKEY of 256 keys", want: ignored, do: manyKeys},
	{name: "DELETE RKEY of none", want: ignored, do: expectAnswer(peer.Response, peer.Negative, peer.LLC(peer.DeleteRkey, 0))},
	{name: "DELETE RKEY of an unknown key", want: ignored, do: expectAnswer(peer.Response|peer.Negative, 0, peer.LLC(peer.DeleteRkey, 0, 1, 0, 0, 0, 9, 9, 9, 9))},
	{name: "DELETE RKEY of keys that are not there", want: lost, do: raw(peer.LLC(peer.DeleteRkey, 0, 10))},
	{name: "DELETE RKEY of 255 keys", want: ignored, do: expectAnswer(peer.Response|peer.Negative, 0, peer.LLC(peer.DeleteRkey, 0, append([]byte{255}, bytes.Repeat([]byte{9}, 3+4*255)...)...))},
	{name: "DELETE RKEY of the key in use", want: dead, do: deletesInUse},
	{name: "RMB of a connection that lives for another one", want: dead, do: reassigns},
	{name: "RMB of a connection that lives, by another address", want: ignored, do: claims},
	{name: "RMB of a connection that lives, by another address in the other role", want: ignored, do: claims},
	{name: "TEST LINK 1000 times", want: lost, do: answersNothing(1000, peer.Deaf)},
	{name: "TEST LINK 1000 times, and no room for the answers", want: lost, do: answersNothing(1000, peer.Busy)},
	{name: "TEST LINK, and a NAK for each answer", want: lost, do: answersNothing(1, peer.Hostile)},
}

// TestLLC has peers send the LLC messages of llcs. A trace shows those that cannot be right.
func TestLLC(t *testing.T) {
	s := openEnv(t, 4)
	events := traced(t, "smckit/smc_llc_malformed")
	s.run(t, 4, llcs)
	all := events()
	for _, malformed := range []string{"len=43 272b", "len=44 272b", "len=60 223c"} {
		if !strings.Contains(all, malformed) {
			t.Errorf("no event of a message with %s:\n%s", malformed, all)
		}
	}
	if right := "len=44 272c"; strings.Contains(all, right) {
		t.Errorf("an event of a message with %s:\n%s", right, all)
	}
}

// offer lowers what adapters offer to new links, until the test ends.
func offer(t *testing.T, limits string) {
	t.Helper()
	peer.RoCEGuest.Need(t)
	const parameter = "/sys/module/smc/parameters/rdma_test"
	if err := os.WriteFile(parameter, []byte(limits), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(parameter, []byte("\n"), 0); err != nil {
			t.Error(err)
		}
	})
}

// TestLongLLCWithOneSGE has peers send long LLC messages to an adapter with one SGE per receive.
func TestLongLLCWithOneSGE(t *testing.T) {
	offer(t, "recv_sge=1")
	var long []connCase
	for _, b := range llcs {
		if b.name == "ADD LINK with 255 pairs" || b.name == "longer than any" || b.name == "DELETE RKEY of 255 keys" {
			long = append(long, b)
		}
	}
	if len(long) != 3 {
		t.Fatal("the messages that are longer than 44 bytes have other names")
	}
	s := openEnv(t, 24)
	s.run(t, 24, long)
}

// TestTestLinkWrong has a peer answer TEST LINK with other data than our module has sent. It loses the link.
func TestTestLinkWrong(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_testlink_time", "1")
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(1, 24), false)
	g.ChangeTestLink = func(m []byte) { m[19] ^= 1 }
	c, err := g.Open(ctx)
	if err == nil {
		err = c.AwaitError(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	c.HangUp()
}
