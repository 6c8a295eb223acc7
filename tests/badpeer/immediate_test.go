// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// immediate has the peer write bytes with wrong immediate data: change is what differs from the right one.
func immediate(length int, change uint32) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		return s.Group.QP.WriteImm(s.Remote.RMB, s.Remote.Rkey, make([]byte, length), s.Remote.Token<<24^change)
	}
}

// immediates are messages as immediate data of a peer that has agreed to them.
var immediates = []connCase{
	{name: "of an RMB that is not", want: ignored, do: immediate(100, 0x80<<24)},
	{name: "of nothing", want: lost, do: immediate(0, 0)},
	{name: "of nothing, blocked", want: lost, do: immediate(0, peer.ImmediateBlocked)},
	{name: "blocked", want: ignored, do: blocked},
	{name: "read what was not sent", want: lost, do: immediate(1, 100)},
	{name: "read more than its RMB has", want: lost, do: immediate(1, 65537)},
	{name: "read as much as it can say", want: lost, do: immediate(1, peer.ImmediateRead)},
	{name: "both", want: lost, do: immediate(65536, peer.ImmediateRead|peer.ImmediateBlocked)},
	{name: "before it may", want: lost, do: func(ctx context.Context, s *session) error {
		c := s.Group.NewConn()
		early := func(context.Context) error {
			return s.Group.QP.WriteImm(c.Remote.RMB, c.Remote.Rkey, []byte("early"), c.Remote.Token<<24)
		}
		if s.Group.Server {
			return peer.InTurn(ctx, c.Begin, c.Confirm, early) // by then our module is ready
		}
		return peer.InTurn(ctx, c.Begin, c.RecvAccept, early)
	}, clientOnly: true},
	{name: "messages as well", want: ignored, do: mixes},
}

// blocked writes data, reports that it has more, and checks the echo.
func blocked(ctx context.Context, s *session) error {
	data := bytes.Repeat([]byte{7}, 100)
	imm := s.Remote.Token<<24 | peer.ImmediateBlocked | uint32(s.Cons-s.SentCons)
	if err := s.Group.QP.WriteImm(s.Remote.RMB+s.Prod%uint64(s.RingSize), s.Remote.Rkey, data, imm); err != nil {
		return err
	}
	s.Prod += uint64(len(data))
	s.SentCons = s.Cons
	s.Seq++
	got, err := s.Read(ctx, len(data))
	if err == nil && !bytes.Equal(got, data) {
		err = peer.ErrWrongData
	}
	return err
}

// mixes sends data by immediate data and by CDC messages in turn. It reports the data that it has read with the next data, or
// at once.
func mixes(ctx context.Context, s *session) error {
	for i := range 20 {
		data := bytes.Repeat([]byte{byte(i)}, 100)
		how := s.WriteImmediate
		if i%3 == 0 {
			how = s.Write
		}
		if err := how(ctx, data); err != nil {
			return err
		}
		err := s.Group.Until(ctx, "data", func() bool { return s.RemoteProd-s.Cons >= uint64(len(data)) })
		if err != nil {
			return err
		}
		at := s.Cons % uint64(len(s.RMB.Bytes))
		if got := s.RMB.Bytes[at:][:len(data)]; !bytes.Equal(got, data) {
			return fmt.Errorf("round %d: %w", i, peer.ErrWrongData)
		}
		s.Cons += uint64(len(data))
		if i%5 == 0 {
			if err := s.SendCDC(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestImmediate has peers that agree to messages as immediate data, which our module then uses.
func TestImmediate(t *testing.T) {
	s := openEnv(t, 14)
	s.agrees = true
	s.run(t, 14, immediates)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("well-behaved, server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(16, byte(i+1)), server)
			g.Immediate = true
			c, err := g.Open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 1000, 65536, 200_000} {
				if err := c.Exchange(ctx, size); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
			}
			// It has 48 receives, of which it can announce 32.
			if c.Remote.Vendor != peer.VendorImmediate|5<<4 || g.ImmediateCount == 0 {
				t.Errorf("our module has said %#x, and used immediate data %d times", c.Remote.Vendor, g.ImmediateCount)
			}
			dialogue(ctx, t, c)
			if err := c.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Run(fmt.Sprintf("switched off, server %v", server), func(t *testing.T) {
			peer.RoCEGuest.Set(t, "net.smc.smcr_immediate", "0")
			ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
			defer cancel()
			g := peer.NewLinkGroup(t, s.RoCENet, peer.Address(17, byte(i+1)), server)
			g.Immediate = true
			c, err := g.Open(ctx)
			if err == nil {
				err = peer.InTurn(ctx, func(ctx context.Context) error { return c.Exchange(ctx, 1000) }, c.Close)
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.Remote.Vendor != 0 || g.ImmediateCount != 0 {
				t.Errorf("our module has said %#x, and used immediate data %d times", c.Remote.Vendor, g.ImmediateCount)
			}
		})
	}
}

// dialogue exchanges more data than the RMB holds, as much in each direction. The answers report what has been read, so our
// module sends no separate messages, except when an answer wraps around the end of the RMB: that is two writes and a message.
func dialogue(ctx context.Context, t *testing.T, c *peer.Conn) {
	t.Helper()
	state := func() (messages, rounds int) {
		c.Group.Locked(func() { messages, rounds = c.CDCCount, int(c.RemoteProd)/len(c.RMB.Bytes) })
		return messages, rounds
	}
	messages, rounds := state()
	for range 20 {
		if err := c.Exchange(ctx, 16000); err != nil {
			t.Fatal(err)
		}
	}
	moreMessages, moreRounds := state()
	if got, most := moreMessages-messages, moreRounds-rounds; got > most {
		t.Errorf("%d messages go with 20 answers, %d of which are two writes", got, most)
	}
}
