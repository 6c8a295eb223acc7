// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// spare is an RMB that no connection uses.
var spare = &peer.Region{Addr: 1 << 50, Rkey: 0x66000000}

// confirmsSpare sends CONFIRM RKEY for an RMB that no connection uses, with a changed count of other links.
func confirmsSpare(count byte, others ...peer.LinkKey) linkStep {
	return asks(peer.Response, peer.Negative, peer.With(peer.ConfirmRkeyOf(spare, others...), 4, count))
}

// deletesInUseBySecond sends DELETE RKEY for the RMB of the open connection, by the key that it has on the second link.
func deletesInUseBySecond(ctx context.Context, s *session) error {
	r := peer.OnSecond(s.RMB)
	key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, r.Rkey)
	if err := asks(peer.Response, peer.Negative, peer.LLC(peer.DeleteRkey, 0, key...))(ctx, s, s.Group.Second.QP); err != nil {
		return err
	}
	s.Group.QP.Forget(s.RMB)
	s.Group.Second.Forget(r)
	if err := s.Put([]byte("hello")); err != nil {
		return err
	}
	return s.SendCDC(ctx)
}

// lies gives the RMB of the open connection a key on the second link that is wrong, and deletes the first link. Our module writes
// with that key, which the peer's adapter refuses.
func lies(ctx context.Context, s *session) error {
	lie := peer.ConfirmRkeyOf(s.RMB, peer.LinkKey{Link: s.Group.Second.Link, Rkey: 0xbad, Addr: 0xbad})
	return inOrder(byFirst(asks(peer.Response, peer.Negative, lie)), byFirst(deletes), func(_ context.Context, s *session) error {
		if err := s.Put([]byte("hello")); err != nil {
			return err
		}
		return s.Group.Post(s.QP, s.NextCDC().Marshal())
	})(ctx, s)
}

// validates sends failover validation with changes.
func validates(change func(m *peer.CDC)) linkStep {
	return func(ctx context.Context, s *session, q *peer.QP) error {
		m := s.Validation()
		change(&m)
		return s.Group.SendBy(ctx, q, m.Marshal())
	}
}

// hasGap sends failover validation by the second link with a number ahead of the last message. The connection ends with the first
// link, by which the missing message does not come any more.
func hasGap(ahead uint16) func(context.Context, *session) error {
	return inOrder(bySecond(validates(func(m *peer.CDC) { m.Seq += ahead })), byFirst(deletes), func(ctx context.Context, s *session) error {
		if err := s.App.Wait(ctx); err != nil {
			return err
		}
		if !errors.Is(s.App.Err, unix.ECONNRESET) {
			return fmt.Errorf("the application has got %w", s.App.Err)
		}
		return nil
	})
}

// alternates sends data by each link, without failover validation.
func alternates(ctx context.Context, s *session, q *peer.QP) error {
	if err := s.Switch(q); err != nil {
		return err
	}
	return s.Exchange(ctx, 500)
}

// writesByOld writes by the first link after the connection has moved to the second.
func writesByOld(ctx context.Context, s *session) error {
	old, at, key := s.QP, s.Remote.RMB+s.Prod%uint64(s.RingSize), s.Remote.Rkey
	if err := moves(ctx, s); err != nil {
		return err
	}
	if err := old.Write(at, key, make([]byte, 100)); err != nil {
		return err
	}
	return old.Flush(ctx)
}

// writesByDeleted writes by the first link, which is deleted at the same time.
func writesByDeleted(ctx context.Context, s *session) error {
	old, at, key := s.QP, s.Remote.RMB+s.Prod%uint64(s.RingSize), s.Remote.Rkey
	if err := deletes(ctx, s, old); err != nil {
		return err
	}
	return old.Write(at, key, make([]byte, 100))
}

// twoLinksData are what peers with two links do with keys and data. The connection is on the first link.
var twoLinksData = []connCase{
	{name: "CONFIRM RKEY without a key for the second link", want: ignored, do: outOfStep(losesSecond(byFirst(confirmsSpare(0))))},
	{name: "CONFIRM RKEY without a key for the first link", want: ignored, do: outOfStep(losesFirst(bySecond(confirmsSpare(0))))},
	{name: "CONFIRM RKEY with key 0 for the second link", want: ignored, do: outOfStep(losesSecond(byFirst(confirmsSpare(1, peer.LinkKey{Link: 2, Addr: 1}))))},
	{name: "CONFIRM RKEY for a link that is not there", want: ignored, do: outOfStep(losesSecond(byFirst(confirmsSpare(1, peer.LinkKey{Link: 99, Rkey: 1, Addr: 1}))))},
	{name: "CONFIRM RKEY for the same link twice", want: ignored, do: byFirst(confirmsSpare(2, peer.LinkKey{Link: 2, Rkey: 1, Addr: 1}, peer.LinkKey{Link: 2, Rkey: 2, Addr: 2}))},
	{name: "CONFIRM RKEY with its own link among the others", want: ignored, do: byEach(1, confirmsSpare(2, peer.LinkKey{Link: 1, Rkey: 1, Addr: 1}, peer.LinkKey{Link: 2, Rkey: 2, Addr: 2}))},
	{name: "CONFIRM RKEY of 2 links that are not there", want: ignored, do: outOfStep(losesSecond(byFirst(confirmsSpare(2))))},
	{name: "CONFIRM RKEY of 255 links", want: ignored, do: byEach(1, asks(peer.Response|peer.Negative, 0, peer.LLC(peer.ConfirmRkey, 0, 255, 1, 2, 3, 4)))},
	{name: "CONFIRM RKEY of key 0", want: ignored, do: outOfStep(losesSecond(byFirst(asks(peer.Response, 0, peer.LLC(peer.ConfirmRkey, 0)))))},
	{name: "CONFIRM RKEY with a wrong key for the other link", want: lost, do: lies},
	{name: "DELETE RKEY of the first link's key by the second", want: ignored, do: bySecond(func(ctx context.Context, s *session, q *peer.QP) error {
		key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, s.RMB.Rkey)
		return asks(peer.Response|peer.Negative, 0, peer.LLC(peer.DeleteRkey, 0, key...))(ctx, s, q)
	})},
	{name: "DELETE RKEY of the key in use by the second", want: dead, do: deletesInUseBySecond},

	{name: "validation by the same link", want: ignored, do: byFirst(validates(func(m *peer.CDC) { m.Seq += 9 }))},
	{name: "validation with a number too low", want: ignored, do: inOrder(bySecond(validates(func(m *peer.CDC) { m.Seq -= 9 })), moves)},
	{name: "validation with a number too high", want: dead, do: hasGap(1)},
	{name: "validation with a number far too high", want: dead, do: hasGap(0x7fff)},
	{name: "validation of an unknown token", want: ignored, do: byEach(1, validates(func(m *peer.CDC) { m.Seq, m.Token = m.Seq+9, m.Token+1 }))},
	{name: "validation of a token of another group", want: ignored, do: func(ctx context.Context, s *session) error {
		return byEach(1, validates(func(m *peer.CDC) { m.Seq, m.Token = 0x4000, s.wellBehaved.Remote.Token }))(ctx, s)
	}},
	{name: "validation with all flags and cursors", want: ignored, do: bySecond(validates(func(m *peer.CDC) {
		m.Flags, m.State, m.Prod, m.Cons = 0xff, 0xff, peer.Cursor{Wrap: 9, Count: 9}, peer.Cursor{Wrap: 9, Count: 9}
	}))},
	{name: "validation 100 times by each", want: ignored, do: byEach(100, validates(func(*peer.CDC) {}))},
	{name: "moves 20 times", want: ignored, do: byEach(10, func(ctx context.Context, s *session, _ *peer.QP) error { return inOrder(moves, exchanges)(ctx, s) })},
	{name: "data by each in turn, without validation", want: ignored, do: byEach(10, alternates)},
	{name: "old number by the second", want: ignored, do: bySecond(func(ctx context.Context, s *session, q *peer.QP) error {
		m := s.NextCDC()
		m.Seq, m.State, m.Prod.Count = m.Seq-3, peer.Aborted, m.Prod.Count+7
		s.Seq--
		return s.Group.SendBy(ctx, q, m.Marshal())
	})},
	{name: "write by the first after the move", want: ignored, do: writesByOld},
	{name: "write by a link that was deleted", want: ignored, do: inOrder(writesByDeleted, opensAnother)},
}

// twoLinksImmediate are peers that agree to messages as immediate data.
var twoLinksImmediate = []connCase{
	{name: "by each link, with validation", want: ignored, do: byEach(5, func(ctx context.Context, s *session, _ *peer.QP) error {
		return inOrder(moves, immediateEcho)(ctx, s)
	})},
	{name: "by the link that is not the connection's", want: ignored, do: func(ctx context.Context, s *session) error {
		first := s.QP
		if err := s.Switch(s.Group.Second.QP); err != nil {
			return err
		}
		return unseen(ctx, s, func(context.Context) error { return s.Switch(first) })
	}},
	{name: "by the old link after the move", want: ignored, do: func(ctx context.Context, s *session) error {
		return unseen(ctx, s, func(ctx context.Context) error { return moves(ctx, s) })
	}},
	{name: "by a link that was deleted", want: ignored, do: inOrder(byFirst(deletes), immediateEcho, opensAnother)},
}

// immediateEcho writes data with immediate data, and reads the echo.
func immediateEcho(ctx context.Context, s *session) error {
	// Messages as immediate data end where the ring does.
	if s.Prod%uint64(s.RingSize)+100 > uint64(s.RingSize) {
		return exchanges(ctx, s)
	}
	if err := s.WriteImmediate(ctx, make([]byte, 100)); err != nil {
		return err
	}
	_, err := s.Read(ctx, 100)
	return err
}

// unseen writes with immediate data by a link that the connection does not use, or does not use any more: move says which it uses.
// Our module ignores the message, but not the data, which a message by the right link then reports.
func unseen(ctx context.Context, s *session, move func(context.Context) error) error {
	q, at, key := s.QP, s.Remote.RMB+s.Prod%uint64(s.RingSize), s.Remote.Rkey
	if err := move(ctx); err != nil {
		return err
	}
	if err := q.WriteImm(at, key, make([]byte, 100), s.Remote.Token<<24|1); err != nil {
		return err
	}
	if err := q.Flush(ctx); err != nil {
		return err
	}
	s.Prod += 100
	if err := s.SendCDC(ctx); err != nil {
		return err
	}
	_, err := s.Read(ctx, 100)
	return err
}

// TestTwoLinksData has peers with two links do what twoLinksData has, and send immediate data.
func TestTwoLinksData(t *testing.T) {
	s := openTwoLinks(t, 44)
	s.run(t, 44, twoLinksData)
	s.agrees = true
	s.run(t, 46, twoLinksImmediate)
}

// TestTwoLinksDataV1 has version 1.
func TestTwoLinksDataV1(t *testing.T) {
	s := openLinkedV1(t, 48)
	s.linked = true
	s.run(t, 48, twoLinksData)
}
