// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/roce"
)

// sized is a message that takes, and says that it takes, other lengths than those.
func sized(kind byte, length, says int) []byte {
	m := make([]byte, length)
	copy(m, []byte{kind, byte(says), byte(says >> 8)})
	return m
}

// lengths are messages of all types, in lengths that they do not have.
func lengths(ctx context.Context, s *scene) error {
	for kind := byte(confirmLink); kind <= deleteRkey; kind++ {
		if kind == deleteLink {
			continue // it may say what it seems to
		}
		for _, n := range []int{0, 1, 3, 4, 43, 45, 88, 1024, 8192} {
			for _, says := range []int{0, n, 44, 8192, 0xffff} {
				if err := s.g.says(ctx, sized(kind, n, says)); err != nil {
					return fmt.Errorf("type %#x, %d bytes that say %d: %w", kind, n, says, err)
				}
			}
		}
	}
	return nil
}

// types are messages of all types that there are not.
func types(ctx context.Context, s *scene) error {
	for kind := range 256 {
		if kind&0xf0 == 0x20 && kind&0xf <= 9 {
			continue
		}
		m := llcMessage(byte(kind), 0, 1, 2, 3, 4)
		if err := s.g.says(ctx, m, append(bytes.Clone(m[:3]), bytes.Repeat([]byte{0xff}, 41)...)); err != nil {
			return fmt.Errorf("type %#x: %w", kind, err)
		}
	}
	return nil
}

// version1 are messages that would do harm in a group of version 1.
func version1(ctx context.Context, s *scene) error {
	for kind := byte(1); kind <= 9; kind++ {
		m := make([]byte, msgLength)
		m[0], m[1], m[3] = kind, msgLength, all
		if err := s.g.says(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// responses are answers to what nobody has asked.
func responses(ctx context.Context, s *scene) error {
	for kind := byte(confirmLink); kind <= deleteRkey; kind++ {
		for _, flags := range []byte{response, 0xff} {
			if err := s.g.says(ctx, llcMessage(kind, flags, bytes.Repeat([]byte{0xff}, 40)...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rejected checks that an ADD LINK of so many pairs is answered by a refusal, whatever there is of them.
func rejected(count, there int) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
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
func manyKeys(ctx context.Context, s *scene) error {
	refused := 0
	for i := range uint32(256) {
		answer, err := s.g.asks(ctx, confirmRkeyMessage(&roce.Region{Rkey: 0x77000000 + i, Addr: 1 << 50}))
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
func answersNothing(n int, m roce.Manner) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		s.g.qp.Be(m)
		for range n {
			if err := s.g.qp.Send(llcMessage(testLink, 0)); err != nil {
				return err
			}
		}
		return nil
	}
}

// answered checks that a message is answered with these flags, and others not set.
func answered(flags, not byte, msg []byte) func(context.Context, *scene) error {
	return func(ctx context.Context, s *scene) error {
		answer, err := s.g.asks(ctx, msg)
		if err == nil && (answer[3]&flags != flags || answer[3]&not != 0 || len(answer) != msgLength) {
			err = fmt.Errorf("%x is answered by %x", msg, answer)
		}
		return err
	}
}

var (
	unknownLink = []byte{77, 0, 1, 0, 0}
	theLink     = []byte{1, 0, 1, 0, 0}
)

// llcs are messages that a peer may, or may not, send about the link group.
var llcs = []behaviour{
	{name: "unknown types", want: ignored, do: types},
	{name: "other lengths", want: ignored, do: lengths},
	{name: "longer than any", want: lost, do: raw(make([]byte, 8193))},
	{name: "much longer than any", want: lost, do: raw(make([]byte, 100_000))},
	{name: "version 1", want: ignored, do: version1},
	{name: "answers without questions", want: ignored, do: responses},
	{name: "CONFIRM LINK again", want: ignored, do: func(ctx context.Context, s *scene) error {
		m := s.g.confirmLinkMessage(0, 99)
		other := bytes.Clone(m)
		other[3] = response // and without what says that there are no eye catchers
		return s.g.says(ctx, m, other, m)
	}},
	{name: "the other order of bytes", want: ignored, do: func(ctx context.Context, s *scene) error {
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
	{name: "ADD LINK CONT", want: ignored, do: raw(llcMessage(addLinkCont, 0, 1, 255), llcMessage(addLinkCont, response, 1, 255))},
	{name: "REQUEST ADD LINK", want: ignored, do: answered(response, 0, llcMessage(requestAddLink, 0, make([]byte, 56)...))},
	{name: "REQUEST ADD LINK of 255 addresses that are not there", want: ignored, do: raw(llcMessage(requestAddLink, 0, append(make([]byte, 20), 255)...))},
	{name: "DELETE LINK of another link", want: ignored, do: answered(response, 0, llcMessage(deleteLink, 0, unknownLink...))},
	{name: "DELETE LINK of this link", want: lost, do: answered(response, 0, llcMessage(deleteLink, 0, theLink...))},
	{name: "DELETE LINK of this link twice", want: lost, do: raw(llcMessage(deleteLink, 0, theLink...), llcMessage(deleteLink, 0, theLink...))},
	{name: "DELETE LINK of all", want: lost, do: raw(llcMessage(deleteLink, all))},
	{name: "DELETE LINK of all twice", want: lost, do: raw(llcMessage(deleteLink, all), llcMessage(deleteLink, all))},
	{name: "DELETE LINK, answered", want: ignored, do: raw(llcMessage(deleteLink, response, theLink...), llcMessage(deleteLink, response|all))},
	{name: "CONFIRM RKEY of 255 links", want: ignored, do: answered(response|negative, 0, llcMessage(confirmRkey, 0, 255, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of 2 links that are not there", want: ignored, do: answered(response, 0, llcMessage(confirmRkey, 0, 2, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY of key 0", want: ignored, do: answered(response, 0, llcMessage(confirmRkey, 0))},
	{name: "CONFIRM RKEY of 256 keys", want: ignored, do: manyKeys},
	{name: "DELETE RKEY of none", want: ignored, do: answered(response, negative, llcMessage(deleteRkey, 0))},
	{name: "DELETE RKEY of an unknown key", want: ignored, do: answered(response|negative, 0, llcMessage(deleteRkey, 0, 1, 0, 0, 0, 9, 9, 9, 9))},
	{name: "DELETE RKEY of keys that are not there", want: ignored, do: raw(llcMessage(deleteRkey, 0, 10), llcMessage(deleteRkey, 0, 255))},
	{name: "DELETE RKEY of 255 keys", want: ignored, do: answered(response|negative, 0, llcMessage(deleteRkey, 0, append([]byte{255}, bytes.Repeat([]byte{9}, 3+4*255)...)...))},
	{name: "DELETE RKEY of the key in use", want: ignored, do: func(ctx context.Context, s *scene) error {
		key := binary.BigEndian.AppendUint32([]byte{1, 0, 0, 0}, s.rmb.Rkey)
		return answered(response, negative, llcMessage(deleteRkey, 0, key...))(ctx, s)
	}},
	{name: "TEST LINK 1000 times", want: lost, do: answersNothing(1000, roce.Deaf)},
	{name: "TEST LINK 1000 times, and no room for the answers", want: lost, do: answersNothing(1000, roce.Busy)},
	{name: "TEST LINK, and a NAK for each answer", want: lost, do: answersNothing(1, roce.Hostile)},
}

// TestPeersLLC plays what a peer may say about the link group.
func TestPeersLLC(t *testing.T) {
	openStage(t, 4).play(t, 4, llcs)
}
