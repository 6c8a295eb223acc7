// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/peer"
)

// sendsCDC sends CDC messages with changes.
func sendsCDC(changes ...func(m *peer.CDC)) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		for _, change := range changes {
			if err := s.SendCDC(ctx, change); tolerable(err) != nil {
				return err
			}
		}
		return nil
	}
}

// tolerable ignores the error of sending to a link that our module has ended, which is how it answers some messages.
func tolerable(err error) error {
	if errors.Is(err, peer.ErrRefused) || errors.Is(err, peer.ErrGone) {
		return nil
	}
	return err
}

// raw sends messages as they are. It does not wait for acknowledgements: our module may end the link first.
func raw(msgs ...[]byte) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		for _, m := range msgs {
			if err := s.Group.QP.Send(m); err != nil {
				return err
			}
		}
		return nil
	}
}

// errTooSlow skips a case on a machine so slow that our module gives up the link before the case has been reached.
var errTooSlow = errors.New("the link will have been given up, as it takes nothing for 10 s")

// heldUp makes our module write more messages than its queue takes while the peer accepts none, and then sends a message as if
// the peer had read all of them.
func heldUp(ctx context.Context, s *session) error {
	s.Group.QP.SetManner(peer.Busy)
	const n = 100
	ctx, cancel := context.WithTimeoutCause(ctx, 8*time.Second, errTooSlow)
	defer cancel()
	for range n {
		want := s.App.Wrote.Load() + 1
		if err := s.Put([]byte{1}); err != nil {
			return err
		}
		err := s.SendCDC(ctx)
		if err == nil {
			err = s.Group.Until(ctx, "the application", func() bool { return s.App.Wrote.Load() == want })
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

// cdcs are CDC messages that no well-behaved peer sends.
var cdcs = []connCase{
	{name: "reads one byte more than there was", want: lost, do: cons(1)},
	{name: "reads a ring more than there was", want: lost, do: cons(65536)},
	{name: "reads three rings more than there was", want: ignored, do: cons(3 * 65536)},
	{name: "reads ahead while we cannot send", want: lost, do: heldUp},
	{name: "consumer beyond the ring", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Cons.Count = 65536 })},
	{name: "consumer far beyond the ring", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Cons.Count = 0xffffffff })},
	{name: "consumer has jumped", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Cons.Wrap += 2 })},
	{name: "consumer has jumped far", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Cons.Wrap = 0x7fff })},
	{name: "consumer goes back", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Cons.Count-- }, func(m *peer.CDC) { m.Cons.Wrap = 0xffff })},
	{name: "producer at the end of the ring", want: ignored, do: func(ctx context.Context, s *session) error {
		return sendsCDC(func(m *peer.CDC) { m.Prod.Count = uint32(s.RingSize) })(ctx, s)
	}},
	{name: "producer far beyond the ring", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Prod.Count = 0xffffffff })},
	{name: "producer has jumped", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Prod.Wrap += 2 }, func(m *peer.CDC) { m.Prod.Wrap = 0x7fff })},
	{name: "producer is rings ahead", want: ended, do: func(ctx context.Context, s *session) error {
		for range 5 {
			s.Prod += uint64(s.RingSize)
			if err := s.SendCDC(ctx); err != nil {
				return err
			}
		}
		return s.SendCDC(ctx, func(m *peer.CDC) { m.State = peer.Aborted })
	}},
	{name: "producer goes back", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Prod.Count-- }, func(m *peer.CDC) { m.Prod = peer.Cursor{} }, func(m *peer.CDC) { m.Prod.Wrap = 0xffff })},
	{name: "wrong token", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Token++ }, func(m *peer.CDC) { m.Token = 0 }, func(m *peer.CDC) { m.Token = 0xffffffff })},
	{name: "wrong token, about the end", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Token, m.State = m.Token+1, 0xff })},
	{name: "token of another group", want: ignored, do: func(ctx context.Context, s *session) error {
		return s.SendCDC(ctx, func(m *peer.CDC) {
			m.Token, m.State, m.Prod.Count = s.wellBehaved.Remote.Token, peer.Closed|peer.Aborted, m.Prod.Count+100
		})
	}},
	{name: "old number", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Seq -= 2; m.Prod.Count += 7; m.State = peer.Aborted })},
	{name: "oldest number", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Seq -= 0x8000; m.Cons.Count += 7 })},
	{name: "number twice", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Seq-- })},
	{name: "number far ahead", want: ignored, do: func(ctx context.Context, s *session) error {
		s.Seq += 0x7ff0
		return s.SendCDC(ctx)
	}},
	{name: "too short", want: ignored, do: func(ctx context.Context, s *session) error {
		m := s.NextCDC()
		m.State = peer.Aborted
		for _, n := range []int{1, 2, 20, 25} {
			if err := s.Group.Send(ctx, m.Marshal()[:n]); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "just long enough", want: ignored, do: func(ctx context.Context, s *session) error {
		return s.Group.Send(ctx, s.NextCDC().Marshal()[:26])
	}},
	{name: "too long", want: ignored, do: func(ctx context.Context, s *session) error {
		for _, n := range []int{45, 60, 1024, 1025, 8192} {
			if err := s.Group.Send(ctx, append(s.NextCDC().Marshal(), make([]byte, n-peer.MsgLength)...)); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "longer than any", want: lost, do: raw(append([]byte{peer.CDCType, peer.MsgLength}, make([]byte, 8191)...))},
	{name: "another length in it", want: ignored, do: func(ctx context.Context, s *session) error {
		m := s.NextCDC()
		m.State = peer.Aborted
		b := m.Marshal()
		b[1] = 45
		return s.Group.Send(ctx, b)
	}},
	{name: "urgent without data", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Flags = peer.UrgentPresent }, func(m *peer.CDC) { m.Flags = peer.UrgentPresent | peer.UrgentPending }, func(m *peer.CDC) { m.Flags = peer.UrgentPending })},
	{name: "all flags but the last", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Flags = 0xf7 }, func(m *peer.CDC) { m.Flags = 0x07 })},
	{name: "failover", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.Flags = peer.Failover; m.Prod.Count += 9; m.State = peer.DoneWriting })},
	{name: "failover of all", want: ignored, do: sendsCDC(func(m *peer.CDC) {
		m.Flags, m.Prod, m.Cons = 0xff, peer.Cursor{Wrap: 9, Count: 9}, peer.Cursor{Wrap: 9, Count: 9}
	})},
	{name: "unknown state", want: ignored, do: sendsCDC(func(m *peer.CDC) { m.State = 0x1f })},
	{name: "asks for news all the time", want: ignored, do: func(ctx context.Context, s *session) error {
		for range 200 {
			if err := s.SendCDC(ctx, func(m *peer.CDC) { m.Flags = peer.UpdateRequested | peer.WriteBlocked }); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "done twice", want: ended, do: sendsCDC(func(m *peer.CDC) { m.State = peer.DoneWriting }, func(m *peer.CDC) { m.State = peer.DoneWriting })},
	{name: "closed twice", want: ended, do: sendsCDC(func(m *peer.CDC) { m.State = peer.Closed }, func(m *peer.CDC) { m.State = peer.Closed })},
	{name: "aborted twice", want: dead, do: sendsCDC(func(m *peer.CDC) { m.State = peer.Aborted }, func(m *peer.CDC) { m.State = peer.Aborted })},
	{name: "closed, aborted, and back", want: ended, do: sendsCDC(func(m *peer.CDC) { m.State = peer.Closed }, func(m *peer.CDC) { m.State = peer.Aborted }, func(m *peer.CDC) { m.State = 0 })},
	{name: "all of the state", want: ended, do: sendsCDC(func(m *peer.CDC) { m.State = 0xff })},
	{name: "data after the end", want: ended, do: func(ctx context.Context, s *session) error {
		if err := s.SendCDC(ctx, func(m *peer.CDC) { m.State = peer.Closed }); err != nil {
			return err
		}
		if err := s.Put(bytes.Repeat([]byte{1}, 1000)); err != nil {
			return err
		}
		return s.SendCDC(ctx)
	}},
}

// cons claims that the peer has read more bytes than our module has sent.
func cons(more uint64) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		m := s.NextCDC()
		m.Cons = peer.CursorAt(s.Cons+more, len(s.RMB.Bytes))
		return raw(m.Marshal())(ctx, s)
	}
}

// TestCDC has peers send the CDC messages of cdcs.
func TestCDC(t *testing.T) {
	openEnv(t, 2).run(t, 2, cdcs)
}
