// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"encoding/binary"
	"testing"
)

// counts are the counts per transaction, megabyte or connection, for both hosts together.
type counts struct{ packets, acks, writes, sends, completions float64 }

// traffic counts the frames of a wire and, of RoCE's frames, acknowledgments and the last frames of writes and messages.
// Each of the latter is a work request.
type traffic struct{ packets, acks, writes, sends int }

// Opcodes of InfiniBand's reliable connections (IBTA 9.2).
const (
	opSendLast, opSendLastImm, opSendOnly, opSendOnlyImm     = 0x02, 0x03, 0x04, 0x05
	opWriteLast, opWriteLastImm, opWriteOnly, opWriteOnlyImm = 0x08, 0x09, 0x0a, 0x0b
	opAck                                                    = 0x11
)

func (t *traffic) add(frame []byte) {
	t.packets++
	switch rocePacket(frame) {
	case opAck:
		t.acks++
	case opSendLast, opSendLastImm, opSendOnly, opSendOnlyImm:
		t.sends++
	case opWriteLast, opWriteLastImm, opWriteOnly, opWriteOnlyImm:
		t.writes++
	}
}

// rocePacket returns the opcode of a RoCEv2 packet over IPv4, or -1.
func rocePacket(frame []byte) int {
	const ethernet, udp, bth, port = 14, 8, 12, 4791
	if len(frame) < ethernet+20 || binary.BigEndian.Uint16(frame[12:]) != 0x0800 {
		return -1
	}
	ip := frame[ethernet:]
	header := int(ip[0]&15) * 4
	if ip[9] != 17 || len(ip) < header+udp+bth || binary.BigEndian.Uint16(ip[header+2:]) != port {
		return -1
	}
	return int(ip[header+udp])
}

func TestTraffic(t *testing.T) {
	packet := func(proto, opcode byte, port uint16) []byte {
		frame := make([]byte, 14+20+8+12)
		binary.BigEndian.PutUint16(frame[12:], 0x0800)
		frame[14], frame[14+9], frame[14+20+8] = 0x45, proto, opcode
		binary.BigEndian.PutUint16(frame[14+20+2:], port)
		return frame
	}
	var got traffic
	for _, frame := range [][]byte{
		packet(17, opAck, 4791), packet(17, opSendOnly, 4791), packet(17, 0x06, 4791), packet(17, opWriteLast, 4791),
		packet(17, opWriteOnly, 4791), packet(6, opAck, 4791), packet(17, opAck, 53), packet(17, opAck, 4791)[:40],
		{},
		nil,
	} {
		got.add(frame)
	}
	if want := (traffic{packets: 10, acks: 1, writes: 2, sends: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
