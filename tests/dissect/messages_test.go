// SPDX-License-Identifier: Apache-2.0

package dissect

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/smckit/smckit/tests/peer"
)

var (
	client = netip.MustParseAddr("10.0.0.1")
	server = netip.MustParseAddr("10.0.0.2")
)

// frame puts an Ethernet header before a packet.
func frame(packet []byte) []byte { return append(append(make([]byte, 12), 8, 0), packet...) }

// tcp is a segment of a connection between client and server.
func tcp(from netip.Addr, sequence uint32, flags byte, options, payload []byte) []byte {
	to := map[netip.Addr]netip.Addr{client: server, server: client}[from]
	b := make([]byte, ipHeader+20, ipHeader+20+len(options)+len(payload))
	b[0], b[9] = 0x45, protocolTCP
	binary.BigEndian.PutUint16(b[2:], uint16(cap(b)))
	copy(b[12:], from.AsSlice())
	copy(b[16:], to.AsSlice())
	binary.BigEndian.PutUint32(b[24:], sequence)
	b[32], b[33] = byte(20+len(options))/4<<4, flags
	return frame(append(append(b, options...), payload...))
}

func rdma(p peer.Packet) []byte {
	p.Src, p.Dst = client, server
	return frame(p.Marshal())
}

// clc is a message without contents.
func clc(kind byte, length int) []byte {
	b := make([]byte, length)
	b[4] = kind
	binary.BigEndian.PutUint16(b[5:], uint16(length))
	return b
}

func llc(head ...byte) []byte { return append(head, make([]byte, 44-len(head))...) }

// TestMessages decodes a message of each kind, some repeated messages, and packets without messages.
func TestMessages(t *testing.T) {
	option := []byte{1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9}
	littleEndian, bigEndian := llc(0x21, 44, 0, 0x80), llc(0x21, 0, 44, 3)
	c := &Capture{Link: Ethernet}
	for _, packet := range [][]byte{
		append(make([]byte, 12), 8, 6, 1, 2, 3), // ARP
		tcp(client, 0, flagSYN, option, nil),
		tcp(server, 0, flagSYN|flagACK, option, nil),
		tcp(client, 1, flagACK, nil, nil),
		tcp(client, 1, flagACK, nil, clc(1, 52)),
		tcp(client, 1, flagACK, nil, clc(1, 52)),
		tcp(server, 1, flagACK, nil, clc(2, 68)),
		rdma(peer.Packet{Opcode: peer.SendOnly, QPN: 17, PSN: 5, Payload: littleEndian}),
		rdma(peer.Packet{Opcode: peer.SendOnly, QPN: 17, PSN: 5, Payload: littleEndian}),
		rdma(peer.Packet{Opcode: peer.SendOnly, QPN: 18, PSN: 5, Payload: bigEndian}),
		rdma(peer.Packet{Opcode: peer.Acknowledge, QPN: 17, PSN: 5}),
		rdma(peer.Packet{Opcode: peer.SendOnly, QPN: 17, PSN: 6, Payload: llc(9, 44, 0, 0)}),
		rdma(peer.Packet{Opcode: peer.WriteOnly, QPN: 17, PSN: 7, Length: 4, Payload: []byte("data")}),
		rdma(peer.Packet{Opcode: peer.WriteOnlyImm, QPN: 17, PSN: 8, Length: 4, Imm: 0x1020304, Payload: []byte("data")}),
		rdma(peer.Packet{Opcode: peer.SendOnly, QPN: 17, PSN: 9, Payload: llc(0xfe, 44)}),
	} {
		c.Add(packet)
	}
	messages, err := c.Messages()
	if err != nil {
		t.Fatal(err)
	}
	want := []Message{
		{Kind: Option, Name: "SYN", Frame: 2, Src: client, Bytes: option},
		{Kind: Option, Name: "SYN, ACK", Frame: 3, Src: server, Bytes: option},
		{Kind: CLC, Name: "Proposal", Frame: 5, Src: client, Bytes: clc(1, 52)},
		{Kind: CLC, Name: "Proposal", Frame: 6, Src: client, Bytes: clc(1, 52), Again: true},
		{Kind: CLC, Name: "Accept", Frame: 7, Src: server, Bytes: clc(2, 68)},
		{Kind: LLC, Name: "Confirm Link (v2)(Resp)", Frame: 8, Src: client, Bytes: littleEndian},
		{Kind: LLC, Name: "Confirm Link (v2)(Resp)", Frame: 9, Src: client, Bytes: littleEndian, Again: true},
		{Kind: LLC, Name: "Confirm Link (v2)", Frame: 10, Src: client, Bytes: bigEndian},
		{Kind: LLC, Name: "Delete Rkey", Frame: 12, Src: client, Bytes: llc(9, 44, 0, 0)},
		{Kind: Immediate, Name: "Immediate", Frame: 14, Src: client, Bytes: []byte{1, 2, 3, 4}},
		{Kind: CDC, Name: "CDC Message", Frame: 15, Src: client, Bytes: llc(0xfe, 44)},
	}
	elsewhere := cmpopts.IgnoreFields(Message{}, "at")
	if diff := cmp.Diff(want, messages, elsewhere, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Error(diff)
	}
	turned(t, c, messages)
}

// turned checks that a message that is sent twice has another length in BigLengths, and not in the capture itself.
func turned(t *testing.T, c *Capture, messages []Message) {
	t.Helper()
	clone := c.BigLengths(messages)
	for i, p := range c.Packets {
		want := slices.Clone(p)
		if i == 7 || i == 8 {
			at := ethernetHeader + ipHeader + udpHeader + bthLength
			want[at+1], want[at+2] = 0, 44
		}
		if diff := cmp.Diff(want, clone.Packets[i]); diff != "" {
			t.Errorf("packet %d: %s", i+1, diff)
		}
	}
}

// TestMessagesBad decodes captures with one unexpected packet each.
func TestMessagesBad(t *testing.T) {
	damaged := rdma(peer.Packet{Opcode: peer.SendOnly, Payload: llc(0x21, 44, 0, 3)})
	damaged[70] ^= 1
	for name, packet := range map[string][]byte{
		"data by TCP":               tcp(client, 1, flagACK, nil, []byte("GET / HTTP/1.0")),
		"a message and a half":      tcp(client, 1, flagACK, nil, append(clc(1, 52), clc(1, 52)[:26]...)),
		"CLC of no type":            tcp(client, 1, flagACK, nil, clc(5, 52)),
		"a segment cut off":         tcp(client, 1, flagACK, nil, clc(1, 52))[:80],
		"LLC of no type":            rdma(peer.Packet{Opcode: peer.SendOnly, Payload: llc(0x0a, 44)}),
		"LLC of version 3":          rdma(peer.Packet{Opcode: peer.SendOnly, Payload: llc(0x31, 44)}),
		"CDC that is too long":      rdma(peer.Packet{Opcode: peer.SendOnly, Payload: append(llc(0xfe, 44), 0)}),
		"nothing":                   rdma(peer.Packet{Opcode: peer.SendOnly}),
		"a message in pieces":       rdma(peer.Packet{Opcode: peer.SendFirst, Payload: llc(0x21, 44, 0, 3)}),
		"immediate data and a SEND": rdma(peer.Packet{Opcode: peer.SendOnlyImm, Payload: llc(0x21, 44, 0, 3)}),
		"damage":                    damaged,
	} {
		c := &Capture{Link: Ethernet, Packets: [][]byte{packet}}
		if messages, err := c.Messages(); err == nil {
			t.Errorf("%s is %+v", name, messages)
		}
	}
	if _, err := (&Capture{Link: Raw}).Messages(); err == nil {
		t.Error("packets without Ethernet have messages")
	}
}

// TestParse reads what Marshal writes, whole and with a part missing.
func TestParse(t *testing.T) {
	c := &Capture{Link: Raw, Packets: [][]byte{[]byte("one"), {}, []byte("three")}}
	file := c.Marshal()
	got, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, got); diff != "" {
		t.Error(diff)
	}
	if got, err = Parse(file[:len(file)-1]); err != nil || len(got.Packets) != 2 {
		t.Errorf("without the last byte: %v, %v", got, err)
	}
	if _, err := Parse(file[:fileHeader-1]); err == nil {
		t.Error("half a header is a capture")
	}
	file[fileHeader+8] = 2 // of 3 bytes
	if got, err := Parse(file); err == nil {
		t.Errorf("a packet of which a part was captured: %+v", got)
	}
}
