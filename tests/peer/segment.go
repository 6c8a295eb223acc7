// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
)

// Flags of a segment.
const (
	FIN = 1 << iota
	SYN
	RST
	PSH
	ACK
	URG
)

const (
	ipv4Header = 20
	ipv6Header = 40
	tcpHeader  = 20
	protoTCP   = 6
)

// Segment is a TCP segment in its IP packet.
type Segment struct {
	Src, Dst         netip.AddrPort
	Seq, Ack         uint32
	Flags            byte
	Window, Urgent   uint16
	Options, Payload []byte // options padded to four bytes
}

// Has reports whether all of these flags are set.
func (s *Segment) Has(flags byte) bool { return s.Flags&flags == flags }

// span is how much of the sequence space the segment takes.
func (s *Segment) span() uint32 {
	n := uint32(len(s.Payload))
	if s.Has(SYN) {
		n++
	}
	if s.Has(FIN) {
		n++
	}
	return n
}

func (s *Segment) String() string {
	return fmt.Sprintf("flags %02x seq %d ack %d win %d opts %x, %d bytes", s.Flags, s.Seq, s.Ack, s.Window, s.Options, len(s.Payload))
}

// marshal encodes the packet.
func (s *Segment) marshal() []byte {
	tcp := make([]byte, tcpHeader, tcpHeader+len(s.Options)+len(s.Payload))
	be := binary.BigEndian
	be.PutUint16(tcp[0:], s.Src.Port())
	be.PutUint16(tcp[2:], s.Dst.Port())
	be.PutUint32(tcp[4:], s.Seq)
	be.PutUint32(tcp[8:], s.Ack)
	tcp[12] = byte((tcpHeader + len(s.Options)) / 4 << 4)
	tcp[13] = s.Flags
	be.PutUint16(tcp[14:], s.Window)
	be.PutUint16(tcp[18:], s.Urgent)
	tcp = append(append(tcp, s.Options...), s.Payload...)
	be.PutUint16(tcp[16:], checksum(s.pseudo(len(tcp)), tcp))
	return append(s.header(len(tcp)), tcp...)
}

// pseudo is the pseudo header for the checksum.
func (s *Segment) pseudo(n int) []byte {
	b := append(s.Src.Addr().AsSlice(), s.Dst.Addr().AsSlice()...)
	return append(b, 0, protoTCP, byte(n>>8), byte(n))
}

func (s *Segment) header(n int) []byte {
	be := binary.BigEndian
	src, dst := s.Src.Addr().AsSlice(), s.Dst.Addr().AsSlice()
	if s.Src.Addr().Is6() {
		h := make([]byte, 8, ipv6Header)
		h[0] = 6 << 4
		be.PutUint16(h[4:], uint16(n))
		h[6], h[7] = protoTCP, 64
		return append(append(h, src...), dst...)
	}
	h := make([]byte, 12, ipv4Header)
	h[0] = 4<<4 | ipv4Header/4
	be.PutUint16(h[2:], uint16(ipv4Header+n))
	h[8], h[9] = 64, protoTCP
	h = append(append(h, src...), dst...)
	be.PutUint16(h[10:], checksum(h))
	return h
}

// checksum is the Internet checksum over parts, of which all but the last have an even length.
func checksum(parts ...[]byte) uint16 {
	var sum uint32
	for _, b := range parts {
		for len(b) > 1 {
			sum += uint32(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) == 1 {
			sum += uint32(b[0]) << 8
		}
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

var errNotTCP = errors.New("not a TCP segment")

// parseSegment decodes a packet.
func parseSegment(b []byte) (*Segment, error) {
	var src, dst netip.Addr
	switch {
	case len(b) >= ipv4Header && b[0]>>4 == 4 && b[9] == protoTCP:
		src, dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
		h, n := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
		if n > len(b) || h > n {
			return nil, errNotTCP
		}
		b = b[h:n]
	case len(b) >= ipv6Header && b[0]>>4 == 6 && b[6] == protoTCP:
		src, dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
		b = b[ipv6Header:]
	default:
		return nil, errNotTCP
	}
	if len(b) < tcpHeader || len(b) < int(b[12]>>4)*4 {
		return nil, errNotTCP
	}
	be := binary.BigEndian
	off := int(b[12]>>4) * 4
	return &Segment{
		Src: netip.AddrPortFrom(src, be.Uint16(b[0:])), Dst: netip.AddrPortFrom(dst, be.Uint16(b[2:])),
		Seq: be.Uint32(b[4:]), Ack: be.Uint32(b[8:]), Flags: b[13], Window: be.Uint16(b[14:]), Urgent: be.Uint16(b[18:]),
		Options: b[tcpHeader:off], Payload: b[off:],
	}, nil
}
