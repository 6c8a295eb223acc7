// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSegments encodes segments and decodes them.
func TestSegments(t *testing.T) {
	for _, hosts := range [][2]string{{"10.9.0.1:5", "10.9.0.2:600"}, {"[fd00::1]:5", "[fd00::2]:600"}} {
		s := &Segment{
			Src: netip.MustParseAddrPort(hosts[0]), Dst: netip.MustParseAddrPort(hosts[1]), Seq: 0xfffffffe, Ack: 7,
			Flags: ACK | PSH, Window: 9, Urgent: 3, Options: Option, Payload: []byte("odd"),
		}
		got, err := parseSegment(s.marshal())
		if diff := cmp.Diff(s, got, cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })); err != nil || diff != "" {
			t.Errorf("%v: %v: %s", hosts, err, diff)
		}
		// The sum over data including its own checksum is 0.
		tcp := s.marshal()
		tcp = tcp[len(tcp)-tcpHeader-len(s.Options)-len(s.Payload):]
		if sum := checksum(s.pseudo(len(tcp)), tcp); sum != 0 {
			t.Errorf("%v: the checksum is off by %#x", hosts, sum)
		}
	}
}

// TestNotSegments decodes truncated packets.
func TestNotSegments(t *testing.T) {
	s := &Segment{Src: netip.MustParseAddrPort("10.9.0.1:5"), Dst: netip.MustParseAddrPort("10.9.0.2:6"), Options: Option}
	whole := s.marshal()
	for n := range whole {
		if _, err := parseSegment(whole[:n]); err == nil {
			t.Errorf("%d of %d bytes are a segment", n, len(whole))
		}
	}
}

// TestCLCSizes checks the sizes of CLC messages, and the lengths in their headers.
func TestCLCSizes(t *testing.T) {
	net := [4]byte{10, 9}
	for _, c := range []struct {
		name string
		msg  []byte
		size int
	}{
		{"PROPOSAL, SMC-R", ProposalR(net, 16), 92},
		{"PROPOSAL, SMC-D", ProposalD1(net, 16), 92},
		{"PROPOSAL, nothing", ProposalNone(), 84},
		{"PROPOSAL, SMC-Rv2", ProposalR2(), 156},
		{"PROPOSAL, SMC-Dv2", ProposalD2(), 224},
		{"ACCEPT, SMC-D", AcceptD1(Accept), 48},
		{"ACCEPT, SMC-Dv2", AcceptD2(Accept), 130},
		{"ACCEPT, SMC-R", AcceptR1(Accept), 68},
		{"ACCEPT, SMC-Rv2", AcceptR2(Accept), 108},
		{"DECLINE", DeclineV1(), 28},
		{"DECLINE, version 2", DeclineV2(), 44},
	} {
		if length := int(binary.BigEndian.Uint16(c.msg[5:])); len(c.msg) != c.size || length != c.size {
			t.Errorf("%s: %d bytes, the header says %d, want %d", c.name, len(c.msg), length, c.size)
		}
		if !bytes.Equal(c.msg[:4], c.msg[len(c.msg)-4:]) {
			t.Errorf("%s: header and trailer differ: %x", c.name, c.msg)
		}
	}
}
