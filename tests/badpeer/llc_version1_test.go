// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/smckit/smckit/tests/peer"
)

// lengths1 are messages of all types that are too short, or whose length field is wrong.
func lengths1(ctx context.Context, s *session) error {
	for kind := byte(1); kind <= 9; kind++ {
		for _, n := range []int{0, 1, 3, 4, 26, 43} {
			m := make([]byte, n)
			copy(m, []byte{kind, peer.MsgLength, 0, peer.AllLinks})
			if err := s.Group.Send(ctx, m); err != nil {
				return fmt.Errorf("type %d, %d bytes: %w", kind, n, err)
			}
		}
		for _, sendsCDC := range []byte{0, 43, 45, 255} {
			m := make([]byte, peer.MsgLength)
			copy(m, []byte{kind, sendsCDC, 0, peer.AllLinks})
			if err := s.Group.Send(ctx, m); err != nil {
				return fmt.Errorf("type %d, which says %d bytes: %w", kind, sendsCDC, err)
			}
		}
	}
	return nil
}

// types1 are messages of all undefined types, and of the types of version 2.
func types1(ctx context.Context, s *session) error {
	for kind := range 256 {
		if kind >= 1 && kind <= 9 || kind == peer.CDCType {
			continue
		}
		m := make([]byte, peer.MsgLength)
		copy(m, []byte{byte(kind), peer.MsgLength, 0, peer.AllLinks, 1, 2, 3, 4})
		if err := raw(m, append(m[:4:4], bytes.Repeat([]byte{0xff}, 40)...))(ctx, s); err != nil {
			return fmt.Errorf("type %#x: %w", kind, err)
		}
		if err := s.Group.QP.Flush(ctx); err != nil {
			return fmt.Errorf("type %#x: %w", kind, err)
		}
	}
	return nil
}

// addLinkRefused checks that ADD LINK is refused, whatever its body.
func addLinkRefused(body ...byte) func(context.Context, *session) error {
	return expectAnswer(peer.Response|peer.AllLinks, 0, peer.LLC(peer.AddLink, 0, body...))
}

// forgets checks which keys of a DELETE RKEY our module reports as unknown.
func forgets(sendsCDC byte, mask byte, keys ...uint32) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		body := []byte{sendsCDC, 0, 0, 0}
		for _, k := range keys {
			body = binary.BigEndian.AppendUint32(body, k)
		}
		answer, err := s.Group.Request(ctx, peer.LLC(peer.DeleteRkey, 0, body...))
		if err == nil && ((answer[3]&peer.Negative == 0) != (mask == 0) || answer[5] != mask) {
			err = fmt.Errorf("withdrawing %x is answered by %x", keys, answer)
		}
		return err
	}
}

// llcs1 are LLC messages of version 1, valid or not.
var llcs1 = []connCase{
	{name: "unknown types", want: ignored, do: types1},
	{name: "other lengths", want: ignored, do: lengths1},
	{name: "longer than any", want: lost, do: raw(append([]byte{7, peer.MsgLength}, make([]byte, 100)...))},
	{name: "much longer than any", want: lost, do: raw(make([]byte, 8192))},
	{name: "answers without questions", want: ignored, do: responses},
	{name: "ADD LINK", want: ignored, do: addLinkRefused(make([]byte, 40)...)},
	{name: "ADD LINK of all bits", want: ignored, do: addLinkRefused(bytes.Repeat([]byte{0xff}, 40)...)},
	{name: "ADD LINK CONT", want: ignored, do: raw(sized(3, peer.MsgLength, peer.MsgLength), append([]byte{3, peer.MsgLength, 0, peer.Response, 1, 255}, make([]byte, 38)...))},
	{name: "DELETE LINK of another link", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.DeleteLink, 0, unknownLink...))},
	{name: "DELETE LINK of this link", want: lost, do: deletesLink},
	{name: "DELETE LINK of all", want: lost, do: raw(append([]byte{4, peer.MsgLength, 0, peer.AllLinks}, make([]byte, 40)...))},
	{name: "TEST LINK", want: ignored, do: expectAnswer(peer.Response, 0, peer.LLC(peer.TestLink, 0, bytes.Repeat([]byte{7}, 40)...))},
	{name: "CONFIRM RKEY of 255 links", want: ignored, do: expectAnswer(peer.Response|peer.Negative, 0, peer.LLC(peer.ConfirmRkey, 0, 255, 1, 2, 3, 4))},
	{name: "CONFIRM RKEY CONT", want: ignored, do: raw(append([]byte{8, peer.MsgLength, 0, 0, 255}, make([]byte, 39)...), append([]byte{8, peer.MsgLength, 0, peer.Response, 9}, make([]byte, 39)...))},
	{name: "CONFIRM RKEY of 256 keys", want: ignored, do: manyKeys},
	{name: "DELETE RKEY of none", want: ignored, do: forgets(0, 0)},
	{name: "DELETE RKEY of unknown keys", want: ignored, do: forgets(3, 0xe0, 9, 8, 7)},
	{name: "DELETE RKEY of more keys than it has room for", want: ignored, do: raw(append([]byte{9, peer.MsgLength, 0, 0, 9}, make([]byte, 39)...), append([]byte{9, peer.MsgLength, 0, 0, 255}, make([]byte, 39)...))},
	{name: "DELETE RKEY of the key in use", want: ignored, do: func(ctx context.Context, s *session) error {
		return forgets(2, 0x40, s.RMB.Rkey, 9)(ctx, s)
	}},
}

// TestVersion1 has peers of version 1 send the LLC messages of llcs1, and the CDC messages of cdcs. Version 1 has no messages
// that are too long.
func TestVersion1(t *testing.T) {
	peer.RoCEGuest.Set(t, "net.smc.smcr_v1_rocev2", "1")
	s := openEnv(t, 20)
	s.v1 = true
	s.run(t, 20, llcs1)
	s.run(t, 22, slices.DeleteFunc(slices.Clone(cdcs), func(b connCase) bool { return b.name == "too long" }))
}
