// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// says sends one CDC message that is not as it should be, or several.
func says(changes ...func(m *cdc)) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, change := range changes {
			if err := s.tell(ctx, change); tolerable(err) != nil {
				return err
			}
		}
		return nil
	}
}

// tolerable takes it for none of the peer's mistakes that our module has answered by the end of the link.
func tolerable(err error) error {
	if errors.Is(err, peer.ErrRefused) || errors.Is(err, errGone) {
		return nil
	}
	return err
}

// raw sends messages as they are. Those that break the link may be answered, or not any more.
func raw(msgs ...[]byte) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		for _, m := range msgs {
			if err := s.g.qp.Send(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// errTooSlow is what a machine is that lets our module give up a link before what is to be tested comes about.
var errTooSlow = errors.New("the link will have been given up, as it takes nothing for 10 s")

// heldUp has our module write more messages than its queue takes, none of which arrives, and tells that all was read.
func heldUp(ctx context.Context, s *session) error {
	s.g.qp.SetManner(peer.Busy)
	const n = 100
	ctx, cancel := context.WithTimeoutCause(ctx, 8*time.Second, errTooSlow)
	defer cancel()
	for range n {
		want := s.app.wrote.Load() + 1
		if err := s.put([]byte{1}); err != nil {
			return err
		}
		err := s.tell(ctx)
		if err == nil {
			err = s.g.until(ctx, "the application", func() bool { return s.app.wrote.Load() == want })
		}
		if err != nil && context.Cause(ctx) == errTooSlow {
			return errTooSlow
		}
		if err != nil {
			return err
		}
	}
	return cons(n)(ctx, s)
}

// cdcs are messages of a connection's peer that cannot be.
var cdcs = []behaviour{
	{name: "reads one byte more than there was", want: lost, do: cons(1)},
	{name: "reads a ring more than there was", want: lost, do: cons(65536)},
	{name: "reads three rings more than there was", want: ignored, do: cons(3 * 65536)},
	{name: "reads ahead while we cannot send", want: lost, do: heldUp},
	{name: "consumer beyond the ring", want: ignored, do: says(func(m *cdc) { m.cons.count = 65536 })},
	{name: "consumer far beyond the ring", want: ignored, do: says(func(m *cdc) { m.cons.count = 0xffffffff })},
	{name: "consumer has jumped", want: ignored, do: says(func(m *cdc) { m.cons.wrap += 2 })},
	{name: "consumer has jumped far", want: ignored, do: says(func(m *cdc) { m.cons.wrap = 0x7fff })},
	{name: "consumer goes back", want: ignored, do: says(func(m *cdc) { m.cons.count-- }, func(m *cdc) { m.cons.wrap = 0xffff })},
	{name: "producer at the end of the ring", want: ignored, do: func(ctx context.Context, s *session) error {
		return says(func(m *cdc) { m.prod.count = uint32(s.size) })(ctx, s)
	}},
	{name: "producer far beyond the ring", want: ignored, do: says(func(m *cdc) { m.prod.count = 0xffffffff })},
	{name: "producer has jumped", want: ignored, do: says(func(m *cdc) { m.prod.wrap += 2 }, func(m *cdc) { m.prod.wrap = 0x7fff })},
	{name: "producer is rings ahead", want: ended, do: func(ctx context.Context, s *session) error {
		for range 5 {
			s.prod += uint64(s.size)
			if err := s.tell(ctx); err != nil {
				return err
			}
		}
		return s.tell(ctx, func(m *cdc) { m.state = stateAbort })
	}},
	{name: "producer goes back", want: ignored, do: says(func(m *cdc) { m.prod.count-- }, func(m *cdc) { m.prod = cursor{} }, func(m *cdc) { m.prod.wrap = 0xffff })},
	{name: "wrong token", want: ignored, do: says(func(m *cdc) { m.token++ }, func(m *cdc) { m.token = 0 }, func(m *cdc) { m.token = 0xffffffff })},
	{name: "wrong token, about the end", want: ignored, do: says(func(m *cdc) { m.token, m.state = m.token+1, 0xff })},
	{name: "token of another group", want: ignored, do: func(ctx context.Context, s *session) error {
		return s.tell(ctx, func(m *cdc) {
			m.token, m.state, m.prod.count = s.wellBehaved.them.Token, stateClosed|stateAbort, m.prod.count+100
		})
	}},
	{name: "old number", want: ignored, do: says(func(m *cdc) { m.seq -= 2; m.prod.count += 7; m.state = stateAbort })},
	{name: "oldest number", want: ignored, do: says(func(m *cdc) { m.seq -= 0x8000; m.cons.count += 7 })},
	{name: "number twice", want: ignored, do: says(func(m *cdc) { m.seq-- })},
	{name: "number far ahead", want: ignored, do: func(ctx context.Context, s *session) error {
		s.seq += 0x7ff0
		return s.tell(ctx)
	}},
	{name: "too short", want: ignored, do: func(ctx context.Context, s *session) error {
		m := s.next()
		m.state = stateAbort
		for _, n := range []int{1, 2, 20, 25} {
			if err := s.g.says(ctx, m.marshal()[:n]); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "just long enough", want: ignored, do: func(ctx context.Context, s *session) error {
		return s.g.says(ctx, s.next().marshal()[:26])
	}},
	{name: "too long", want: ignored, do: func(ctx context.Context, s *session) error {
		for _, n := range []int{45, 60, 1024, 1025, 8192} {
			if err := s.g.says(ctx, append(s.next().marshal(), make([]byte, n-msgLength)...)); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "longer than any", want: lost, do: raw(append([]byte{cdcType, msgLength}, make([]byte, 8191)...))},
	{name: "another length in it", want: ignored, do: func(ctx context.Context, s *session) error {
		m := s.next()
		m.state = stateAbort
		b := m.marshal()
		b[1] = 45
		return s.g.says(ctx, b)
	}},
	{name: "urgent without data", want: ignored, do: says(func(m *cdc) { m.flags = flagUrgent }, func(m *cdc) { m.flags = flagUrgent | flagPending }, func(m *cdc) { m.flags = flagPending })},
	{name: "all flags but the last", want: ignored, do: says(func(m *cdc) { m.flags = 0xf7 }, func(m *cdc) { m.flags = 0x07 })},
	{name: "failover", want: ignored, do: says(func(m *cdc) { m.flags = flagFailover; m.prod.count += 9; m.state = stateDone })},
	{name: "failover of all", want: ignored, do: says(func(m *cdc) { m.flags, m.prod, m.cons = 0xff, cursor{9, 9}, cursor{9, 9} })},
	{name: "unknown state", want: ignored, do: says(func(m *cdc) { m.state = 0x1f })},
	{name: "asks for news all the time", want: ignored, do: func(ctx context.Context, s *session) error {
		for range 200 {
			if err := s.tell(ctx, func(m *cdc) { m.flags = flagUpdate | flagBlocked }); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "done twice", want: ended, do: says(func(m *cdc) { m.state = stateDone }, func(m *cdc) { m.state = stateDone })},
	{name: "closed twice", want: ended, do: says(func(m *cdc) { m.state = stateClosed }, func(m *cdc) { m.state = stateClosed })},
	{name: "aborted twice", want: dead, do: says(func(m *cdc) { m.state = stateAbort }, func(m *cdc) { m.state = stateAbort })},
	{name: "closed, aborted, and back", want: ended, do: says(func(m *cdc) { m.state = stateClosed }, func(m *cdc) { m.state = stateAbort }, func(m *cdc) { m.state = 0 })},
	{name: "all of the state", want: ended, do: says(func(m *cdc) { m.state = 0xff })},
	{name: "data after the end", want: ended, do: func(ctx context.Context, s *session) error {
		if err := s.tell(ctx, func(m *cdc) { m.state = stateClosed }); err != nil {
			return err
		}
		if err := s.put(bytes.Repeat([]byte{1}, 1000)); err != nil {
			return err
		}
		return s.tell(ctx)
	}},
}

// cons has the peer tell that it has read more than it can have.
func cons(more uint64) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		m := s.next()
		m.cons = at(s.cons+more, len(s.rmb.Bytes))
		return raw(m.marshal())(ctx, s)
	}
}

// TestPeersCDC plays what a peer may tell of a connection.
func TestPeersCDC(t *testing.T) {
	openEnv(t, 2).run(t, 2, cdcs)
}
