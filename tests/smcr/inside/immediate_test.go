// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"fmt"
	"testing"
)

// word has the peer write bytes, with immediate data of its own: what is to be changed of that which would be right.
func word(length int, change uint32) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		return s.g.qp.WriteImm(s.them.RMB, s.them.Rkey, make([]byte, length), s.them.Token<<24^change)
	}
}

// words are what a peer may say that has agreed to immediate data.
var words = []behaviour{
	{name: "of an RMB that is not", want: ignored, do: word(100, 0x80<<24)},
	{name: "of nothing", want: lost, do: word(0, 0)},
	{name: "of nothing, blocked", want: lost, do: word(0, immediateBlocked)},
	{name: "blocked", want: ignored, do: blocked},
	{name: "read what was not sent", want: lost, do: word(1, 100)},
	{name: "read more than its RMB has", want: lost, do: word(1, 65537)},
	{name: "read as much as it can say", want: lost, do: word(1, immediateRead)},
	{name: "both", want: lost, do: word(65536, immediateRead|immediateBlocked)},
	{name: "before it may", want: lost, do: func(ctx context.Context, s *session) error {
		c := s.g.conn()
		early := func(context.Context) error {
			return s.g.qp.WriteImm(c.them.RMB, c.them.Rkey, []byte("early"), c.them.Token<<24)
		}
		if s.g.server {
			return inTurn(ctx, c.begin, c.confirm, early) // by then our module is ready
		}
		return inTurn(ctx, c.begin, c.accepted, early)
	}, clientOnly: true},
	{name: "messages as well", want: ignored, do: mixes},
}

// blocked writes data that is not the last, and is echoed.
func blocked(ctx context.Context, s *session) error {
	data := bytes.Repeat([]byte{7}, 100)
	imm := s.them.Token<<24 | immediateBlocked | uint32(s.cons-s.toldCons)
	if err := s.g.qp.WriteImm(s.them.RMB+s.prod%uint64(s.size), s.them.Rkey, data, imm); err != nil {
		return err
	}
	s.prod += uint64(len(data))
	s.toldCons = s.cons
	s.seq++
	got, err := s.read(ctx, len(data))
	if err == nil && !bytes.Equal(got, data) {
		err = errWrong
	}
	return err
}

// mixes has data go by immediate data and by messages, and tells with the next what it has read, or at once.
func mixes(ctx context.Context, s *session) error {
	for i := range 20 {
		data := bytes.Repeat([]byte{byte(i)}, 100)
		how := s.brief
		if i%3 == 0 {
			how = s.write
		}
		if err := how(ctx, data); err != nil {
			return err
		}
		err := s.g.until(ctx, "data", func() bool { return s.theirProd-s.cons >= uint64(len(data)) })
		if err != nil {
			return err
		}
		at := s.cons % uint64(len(s.rmb.Bytes))
		if got := s.rmb.Bytes[at:][:len(data)]; !bytes.Equal(got, data) {
			return fmt.Errorf("round %d: %w", i, errWrong)
		}
		s.cons += uint64(len(data))
		if i%5 == 0 {
			if err := s.tell(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestPeersImmediate has peers that agree to messages as immediate data, which our module then uses.
func TestPeersImmediate(t *testing.T) {
	s := openEnv(t, 14)
	s.agrees = true
	s.run(t, 14, words)
	for i, server := range []bool{false, true} {
		t.Run(fmt.Sprintf("well-behaved, server %v", server), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			g := newGroup(t, s.network, address(16, byte(i+1)), server)
			g.agrees = true
			c, err := g.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range []int{1, 1000, 65536, 200_000} {
				if err := c.exchange(ctx, size); err != nil {
					t.Fatalf("%d bytes: %v", size, err)
				}
			}
			// Of the 48 receives that it has, it can say 32.
			if c.them.Vendor != vendorImmediate|5<<4 || g.brief == 0 {
				t.Errorf("our module has said %#x, and used immediate data %d times", c.them.Vendor, g.brief)
			}
			dialogue(ctx, t, c)
			if err := c.close(ctx); err != nil {
				t.Error(err)
			}
		})
		t.Run(fmt.Sprintf("switched off, server %v", server), func(t *testing.T) {
			guests.Set(t, "net.smc.smcr_immediate", "0")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			g := newGroup(t, s.network, address(17, byte(i+1)), server)
			g.agrees = true
			c, err := g.open(ctx)
			if err == nil {
				err = inTurn(ctx, func(ctx context.Context) error { return c.exchange(ctx, 1000) }, c.close)
			}
			if err != nil {
				t.Fatal(err)
			}
			if c.them.Vendor != 0 || g.brief != 0 {
				t.Errorf("our module has said %#x, and used immediate data %d times", c.them.Vendor, g.brief)
			}
		})
	}
}

// dialogue has as much asked as answered, more than the RMB holds in all. The answers tell what has been read: no message does.
// But one that goes around the end of the RMB is two writes, and a message.
func dialogue(ctx context.Context, t *testing.T, c *conn) {
	t.Helper()
	state := func() (messages, rounds int) {
		c.g.mu.Lock()
		defer c.g.mu.Unlock()
		return c.messages, int(c.theirProd) / len(c.rmb.Bytes)
	}
	messages, rounds := state()
	for range 20 {
		if err := c.exchange(ctx, 16000); err != nil {
			t.Fatal(err)
		}
	}
	moreMessages, moreRounds := state()
	if got, most := moreMessages-messages, moreRounds-rounds; got > most {
		t.Errorf("%d messages go with 20 answers, %d of which are two writes", got, most)
	}
}
