// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"net/netip"
	"slices"
)

// Opcodes of packets of a reliable connection.
const (
	SendFirst = iota
	SendMiddle
	SendLast
	SendLastImm
	SendOnly
	SendOnlyImm
	WriteFirst
	WriteMiddle
	WriteLast
	WriteLastImm
	WriteOnly
	WriteOnlyImm
	Acknowledge = 0x11
)

// Syndromes of an acknowledgement.
const (
	SyndromeACK      = 0x1f // with unlimited credits
	SyndromeRNR      = 0x20 // receiver not ready; the lowest bits are how long to wait
	SyndromeSequence = 0x60
	SyndromeInvalid  = 0x61
	SyndromeAccess   = 0x62
)

// syndromeKind masks the bits that distinguish ACK, RNR NAK and other NAKs.
const syndromeKind = 0x60

const (
	rocePort   = 4791
	udpHeader  = 8
	bthLength  = 12
	rethLength = 16
	aethLength = 4
	immLength  = 4
	icrcLength = 4
	psnMask    = 0xffffff
)

// Packet is a packet of a reliable connection.
type Packet struct {
	Src, Dst    netip.Addr
	Opcode      byte
	Solicited   bool
	AckReq      bool
	QPN, PSN    uint32 // of 24 bits
	Addr        uint64 // of a write's first packet, as what follows
	Rkey        uint32
	Length      uint32
	Syndrome    byte   // of an acknowledgement, as what follows
	MSN         uint32 // of 24 bits
	Imm         uint32 // of the last packet of some
	Payload     []byte
	SourcePort  uint16
	Fingerprint uint16 // identification in the IP header
	TOS         byte   // of a packet that was received
}

func hasRETH(opcode byte) bool {
	return opcode == WriteFirst || opcode == WriteOnly || opcode == WriteOnlyImm
}

func hasImm(opcode byte) bool {
	return opcode == SendLastImm || opcode == SendOnlyImm || opcode == WriteLastImm || opcode == WriteOnlyImm
}

// Marshal returns the packet from its IPv4 header on.
func (p *Packet) Marshal() []byte {
	be := binary.BigEndian
	pad := -len(p.Payload) & 3
	b := make([]byte, ipv4Header+udpHeader+bthLength, ipv4Header+udpHeader+bthLength+rethLength+immLength+len(p.Payload)+pad+icrcLength)
	bth := b[ipv4Header+udpHeader:]
	bth[0] = p.Opcode
	bth[1] = byte(pad) << 4
	if p.Solicited {
		bth[1] |= 0x80
	}
	be.PutUint16(bth[2:], 0xffff)
	be.PutUint32(bth[4:], p.QPN&psnMask)
	be.PutUint32(bth[8:], p.PSN&psnMask)
	if p.AckReq {
		bth[8] = 0x80
	}
	if hasRETH(p.Opcode) {
		b = be.AppendUint32(be.AppendUint32(be.AppendUint64(b, p.Addr), p.Rkey), p.Length)
	}
	if p.Opcode == Acknowledge {
		b = be.AppendUint32(b, uint32(p.Syndrome)<<24|p.MSN&psnMask)
	}
	if hasImm(p.Opcode) {
		b = be.AppendUint32(b, p.Imm)
	}
	b = append(append(b, p.Payload...), make([]byte, pad)...)
	p.headers(b)
	return binary.LittleEndian.AppendUint32(b, icrc(b))
}

// headers fills in the headers of IP and UDP.
func (p *Packet) headers(b []byte) {
	be := binary.BigEndian
	n := len(b) + icrcLength
	b[0] = 4<<4 | ipv4Header/4
	be.PutUint16(b[2:], uint16(n))
	be.PutUint16(b[4:], p.Fingerprint)
	b[6], b[8], b[9] = 0x40, 64, 17
	copy(b[12:], p.Src.AsSlice())
	copy(b[16:], p.Dst.AsSlice())
	be.PutUint16(b[10:], checksum(b[:ipv4Header]))
	be.PutUint16(b[20:], p.SourcePort)
	be.PutUint16(b[22:], rocePort)
	be.PutUint16(b[24:], uint16(n-ipv4Header))
}

// icrc is the checksum over what routers do not change.
func icrc(packet []byte) uint32 {
	b := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, packet...)
	const at = 8
	for _, i := range []int{1, 8, 10, 11, ipv4Header + 6, ipv4Header + 7, ipv4Header + udpHeader + 4} {
		b[at+i] = 0xff
	}
	return crc32.ChecksumIEEE(b)
}

var (
	errNotRoCE = errors.New("not a packet of RoCEv2")
	errICRC    = errors.New("the packet's checksum is wrong")
)

// ParsePacket decodes a packet from its IPv4 header on. The payload is a copy.
func ParsePacket(b []byte) (*Packet, error) {
	be := binary.BigEndian
	if len(b) < ipv4Header+udpHeader+bthLength+icrcLength || b[0] != 4<<4|ipv4Header/4 || b[9] != 17 || be.Uint16(b[22:]) != rocePort {
		return nil, errNotRoCE
	}
	n := int(be.Uint16(b[2:]))
	if n > len(b) || n < ipv4Header+udpHeader+bthLength+icrcLength {
		return nil, errNotRoCE
	}
	end := n - icrcLength
	if binary.LittleEndian.Uint32(b[end:]) != icrc(b[:end]) {
		return nil, errICRC
	}
	bth := b[ipv4Header+udpHeader:]
	p := &Packet{
		Src: netip.AddrFrom4([4]byte(b[12:])), Dst: netip.AddrFrom4([4]byte(b[16:])), Opcode: bth[0],
		Solicited: bth[1]&0x80 != 0, AckReq: bth[8]&0x80 != 0, QPN: be.Uint32(bth[4:]) & psnMask, PSN: be.Uint32(bth[8:]) & psnMask,
		Fingerprint: be.Uint16(b[4:]), SourcePort: be.Uint16(b[20:]), TOS: b[1],
	}
	return p, p.body(b[ipv4Header+udpHeader+bthLength:end], int(bth[1]>>4&3))
}

// body decodes what follows the base header.
func (p *Packet) body(b []byte, pad int) error {
	be := binary.BigEndian
	need := pad
	if hasRETH(p.Opcode) {
		need += rethLength
	}
	if p.Opcode == Acknowledge {
		need += aethLength
	}
	if hasImm(p.Opcode) {
		need += immLength
	}
	if len(b) < need {
		return errNotRoCE
	}
	if hasRETH(p.Opcode) {
		p.Addr, p.Rkey, p.Length = be.Uint64(b), be.Uint32(b[8:]), be.Uint32(b[12:])
		b = b[rethLength:]
	}
	if p.Opcode == Acknowledge {
		p.Syndrome, p.MSN = b[0], be.Uint32(b)&psnMask
		b = b[aethLength:]
	}
	if hasImm(p.Opcode) {
		p.Imm = be.Uint32(b)
		b = b[immLength:]
	}
	p.Payload = slices.Clone(b[:len(b)-pad])
	return nil
}
