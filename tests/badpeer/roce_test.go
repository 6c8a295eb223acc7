// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"math"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// The cases here do not wait for acknowledgements: our module may end the link first.

// writes has the peer write at an offset of our RMB, with changed bits in the key.
func writes(off int64, key uint32, length int) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		return s.Group.QP.Write(s.Remote.RMB+uint64(off), s.Remote.Rkey^key, make([]byte, length))
	}
}

// writesToEnd has the peer write from before the end of our RMB to behind it.
func writesToEnd(before, behind int) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		before := min(before, s.RingSize)
		return writes(int64(s.RingSize-before), 0, before+behind)(ctx, s)
	}
}

// writesImm has the peer write with immediate data that it has not agreed to.
func writesImm(length int) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		return s.Group.QP.WriteImm(s.Remote.RMB, s.Remote.Rkey, make([]byte, length), 0x12345678)
	}
}

// packets sends packets as they are.
func packets(all ...*peer.Packet) func(context.Context, *session) error {
	return func(_ context.Context, s *session) error {
		for _, p := range all {
			one := *p
			if err := s.Group.QP.Raw(&one); err != nil {
				return err
			}
		}
		return nil
	}
}

// roces are RDMA operations of a peer.
var roces = []connCase{
	{name: "write with immediate data", want: lost, do: writesImm(1)},
	{name: "write of nothing with immediate data", want: lost, do: writesImm(0)},
	{name: "write of a message's length with immediate data", want: lost, do: writesImm(peer.MsgLength)},
	{name: "write of 64 KiB with immediate data", want: lost, do: writesImm(65536)},
	{name: "message with immediate data", want: ignored, do: func(_ context.Context, s *session) error {
		return s.Group.QP.SendImm(s.NextCDC().Marshal())
	}},
	{name: "write behind the RMB", want: lost, do: writesToEnd(0, 1)},
	{name: "write across the end of the RMB", want: lost, do: writesToEnd(10, 10)},
	{name: "write before the RMB", want: lost, do: writes(-1, 0, 1)},
	{name: "write of more than the RMB", want: lost, do: writesToEnd(math.MaxInt, 1)},
	{name: "write with a wrong key", want: lost, do: writes(0, 0x5500, 100)},
	{name: "write with a key that is almost right", want: lost, do: writes(0, 1, 100)},
	{name: "write of all of the RMB", want: ignored, do: writesToEnd(math.MaxInt, 0)},
	{name: "write of nothing", want: ignored, do: writes(0, 0, 0)},
	{name: "read", want: lost, do: packets(&peer.Packet{Opcode: 0x0c, Payload: make([]byte, 16)})},
	{name: "atomic", want: lost, do: packets(&peer.Packet{Opcode: 0x14, Payload: make([]byte, 28)})},
	{name: "middle without a beginning", want: lost, do: packets(&peer.Packet{Opcode: peer.SendMiddle, Payload: make([]byte, 1024)})},
	{name: "message of a packet longer than the path takes", want: tooLong(), do: packets(&peer.Packet{Opcode: peer.SendOnly, Payload: make([]byte, 1028)})},
	{name: "write longer than it said", want: lost, do: func(ctx context.Context, s *session) error {
		return packets(&peer.Packet{
			Opcode: peer.WriteOnly, AckReq: true, Addr: s.Remote.RMB, Rkey: s.Remote.Rkey, Length: 10, Payload: make([]byte, 1000),
		})(ctx, s)
	}},
	{name: "write after the end", want: ended, do: func(ctx context.Context, s *session) error {
		if err := s.SendCDC(ctx, func(m *peer.CDC) { m.State = peer.Closed }); err != nil {
			return err
		}
		if err := s.App.Wait(ctx); err != nil {
			return err
		}
		if err := s.Put(bytes.Repeat([]byte{0xee}, 60000)); err != nil {
			return err
		}
		return s.Group.QP.Flush(ctx)
	}},
}

// tooLong is the outcome of a packet that is longer than the path MTU. soft-RoCE of Linux 6.1 takes it; our module ignores its
// content.
func tooLong() outcome {
	if release, err := guest.Release(); err == nil && strings.HasPrefix(release, "6.1.") {
		return ignored
	}
	return lost
}

// TestRoCE has peers' adapters send the operations of roces.
func TestRoCE(t *testing.T) {
	openEnv(t, 6).run(t, 6, roces)
}
