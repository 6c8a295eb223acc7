// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/hex"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var addresses = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })

// stock are packets that soft-RoCE of Linux 6.12 has sent, from their IP header on: a SEND, and its acknowledgement.
var stock = []struct {
	hex  string
	want Packet
}{
	{
		"45000058d581400001117e110a0009010a000902c12112b7004400000480ffff0000001180ea3e61212c000352540000090100000000000000000000ffff0a" +
			"000901000011010000010102ff0000000000000000f8a59885",
		Packet{Opcode: SendOnly, Solicited: true, AckReq: true, QPN: 0x11, PSN: 0xea3e61},
	},
	{
		"4500003006cb400001114cf00a0009020a000901c12112b7001c00001100ffff0000001100ea3e611f000001510dff24",
		Packet{Opcode: Acknowledge, QPN: 0x11, PSN: 0xea3e61, Syndrome: SyndromeACK, MSN: 1},
	},
}

// TestRoCEOfStock decodes packets of soft-RoCE, and corrupts each byte that the checksum covers.
func TestRoCEOfStock(t *testing.T) {
	for _, c := range stock {
		raw, err := hex.DecodeString(c.hex)
		if err != nil {
			t.Fatal(err)
		}
		p, err := ParsePacket(raw)
		if err != nil {
			t.Errorf("%s: %v", c.hex, err)
			continue
		}
		if p.Opcode != c.want.Opcode || p.Solicited != c.want.Solicited || p.AckReq != c.want.AckReq || p.QPN != c.want.QPN ||
			p.PSN != c.want.PSN || p.Syndrome != c.want.Syndrome || p.MSN != c.want.MSN {
			t.Errorf("%s: %+v, want %+v", c.hex, p, c.want)
		}
		if p.Opcode == SendOnly && len(p.Payload) != 44 {
			t.Errorf("%s: %d bytes", c.hex, len(p.Payload))
		}
		for i := ipv4Header + udpHeader + 8; i < len(raw); i++ {
			raw[i] ^= 1
			if _, err := ParsePacket(raw); err == nil {
				t.Errorf("%s: byte %d does not matter", c.hex, i)
			}
			raw[i] ^= 1
		}
	}
}

// TestRoCERoundTrip encodes packets and decodes them.
func TestRoCERoundTrip(t *testing.T) {
	ends := Packet{Src: netip.MustParseAddr("10.9.0.1"), Dst: netip.MustParseAddr("10.9.0.2"), QPN: 0x123456, PSN: 0xfffffe, SourcePort: 0xc000}
	for _, p := range []Packet{
		{Opcode: SendOnly, Solicited: true, AckReq: true, Payload: make([]byte, 44)},
		{Opcode: SendMiddle, Payload: make([]byte, 1024)},
		{Opcode: WriteOnly, Addr: 1 << 40, Rkey: 7, Length: 3, Payload: []byte("odd")},
		{Opcode: WriteOnlyImm, Addr: 1, Rkey: 7, Length: 0, Imm: 5, Payload: []byte{}},
		{Opcode: WriteLastImm, Imm: 5, Payload: []byte{1}},
		{Opcode: Acknowledge, Syndrome: SyndromeRNR | 3, MSN: 0xffffff, Payload: []byte{}},
	} {
		p.Src, p.Dst, p.QPN, p.PSN, p.SourcePort = ends.Src, ends.Dst, ends.QPN, ends.PSN, ends.SourcePort
		raw := p.Marshal()
		got, err := ParsePacket(raw)
		if err != nil {
			t.Errorf("%+v: %v", p, err)
			continue
		}
		if diff := cmp.Diff(&p, got, addresses); diff != "" {
			t.Error(diff)
		}
		for n := range raw {
			if _, err := ParsePacket(raw[:n]); err == nil {
				t.Errorf("%d of %d bytes are a packet", n, len(raw))
			}
		}
	}
}
