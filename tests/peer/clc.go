// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"encoding/binary"
)

// Types of CLC messages.
const (
	Proposal = 1 + iota
	Accept
	Confirm
	Decline
)

// Option is the TCP option that asks for SMC, as Linux writes it.
var Option = []byte{1, 1, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9}

// MSS is the option that every SYN has.
var MSS = []byte{2, 4, 0x05, 0xb4}

// Pad pads options to a multiple of four bytes.
func Pad(options []byte) []byte {
	for len(options)%4 != 0 {
		options = append(bytes.Clone(options), 0)
	}
	return options
}

// Magic reports whether options contain the SMC option.
func Magic(options []byte) bool { return bytes.Contains(options, Option[2:]) }

// With returns a copy of a message with other bytes at an offset; a negative one counts from the end.
func With(msg []byte, at int, b ...byte) []byte {
	msg = bytes.Clone(msg)
	if at < 0 {
		at += len(msg)
	}
	copy(msg[at:], b)
	return msg
}

// Resize returns a copy of a message with another length in its header, and with all of its bytes.
func Resize(msg []byte, length int) []byte { return With(msg, 5, byte(length>>8), byte(length)) }

// frame adds header and trailer.
func frame(smcd bool, kind, flags byte, body []byte) []byte {
	eye := []byte{0xe2, 0xd4, 0xc3, 0xd9}
	if smcd {
		eye[3] = 0xc4
	}
	n := 8 + len(body) + len(eye)
	msg := append(bytes.Clone(eye), kind, byte(n>>8), byte(n), flags)
	return append(append(msg, body...), eye...)
}

// Offsets in a PROPOSAL.
const (
	AtPrefixOffset = 38
	AtV2Offset     = 50
	AtV6Count      = 40 + 40 + 7
)

// ProposalR makes a PROPOSAL of version 1 that offers SMC-R, from an IPv4 network.
func ProposalR(subnet [4]byte, bits byte) []byte {
	body := make([]byte, 32+40)
	body[AtPrefixOffset-8+1] = 40
	body = append(body, subnet[:]...)
	return frame(false, Proposal, 0x28, append(body, bits, 0, 0, 0))
}

// ProposalD1 makes a PROPOSAL of version 1 that offers SMC-D, from an IPv4 network.
func ProposalD1(subnet [4]byte, bits byte) []byte {
	msg := With(ProposalR(subnet, bits), 7, 0x29)
	return With(msg, 40, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0, 1)
}

// ProposalNone makes a PROPOSAL that offers nothing.
func ProposalNone() []byte { return frame(false, Proposal, 0x2a, make([]byte, 32+40)) }

// EID is in every PROPOSAL of version 2.
var EID = []byte("SMCKIT.LAB                      ")

// Offsets in the PROPOSAL of version 2: where its part of that version begins, and in it.
const (
	AtV2       = 40 + 40
	AtEIDs     = AtV2
	AtGIDs     = AtV2 + 1
	AtRelease  = AtV2 + 3
	AtD2Offset = AtV2 + 6
	AtMaxConns = AtV2 + 24
	AtMaxLinks = AtV2 + 25
)

// proposalV2 makes a PROPOSAL of version 2 with one EID.
func proposalV2(flags byte, gids byte, d2 uint16) []byte {
	body := make([]byte, 32+40)
	body[AtV2Offset-8+1] = AtV2 - (AtV2Offset + 2)
	part := make([]byte, 40)
	part[0], part[1], part[3] = 1, gids, 1<<4
	binary.BigEndian.PutUint16(part[6:], d2)
	part[24], part[25], part[27] = 255, 2, 1
	body = append(append(body, part...), EID...)
	for range gids {
		body = append(body, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff)
	}
	return frame(false, Proposal, flags, body)
}

// ProposalR2 makes a PROPOSAL that offers SMC-Rv2.
func ProposalR2() []byte { return proposalV2(0x22, 0, 0) }

// ProposalD2 makes a PROPOSAL that offers SMC-Dv2.
func ProposalD2() []byte {
	const gids = 2
	msg := proposalV2(0x26, gids, 32+32)
	at := len(msg) - 4 - gids*10
	msg = append(msg[:at:at], append(make([]byte, 48), msg[at:]...)...)
	return Resize(msg, len(msg))
}

// AcceptD1 makes an ACCEPT, or CONFIRM, for SMC-D of version 1.
func AcceptD1(kind byte) []byte {
	body := make([]byte, 36)
	body[7], body[15] = 7, 9
	return frame(true, kind, 0x19, body)
}

// Offsets in an ACCEPT of SMC-Dv2.
const (
	AtFCE        = 74
	AtFCERelease = AtFCE + 1
)

// AcceptD2 makes an ACCEPT, or CONFIRM, for SMC-Dv2, the first of its link group.
func AcceptD2(kind byte) []byte {
	body := make([]byte, 26, 128)
	body[7], body[15], body[24], body[25] = 7, 9, 0xff, 0xff
	body = append(body, EID...)
	body = append(body, make([]byte, 8)...)
	fce := make([]byte, 52)
	fce[1] = 2<<4 | 1
	copy(fce[4:], EID)
	return frame(true, kind, 0x29, append(body, fce...))
}

// AcceptR1 makes an ACCEPT, or CONFIRM, for SMC-R of version 1.
func AcceptR1(kind byte) []byte { return frame(false, kind, 0x18, make([]byte, 56)) }

// AcceptR2 makes an ACCEPT, or CONFIRM, for SMC-Rv2, not the first of its link group.
func AcceptR2(kind byte) []byte { return frame(false, kind, 0x20, make([]byte, 96)) }

// DeclineV1 makes a DECLINE of version 1.
func DeclineV1() []byte {
	return frame(false, Decline, 0x10, append(make([]byte, 8), 3, 3, 0, 0, 0, 0, 0, 0))
}

// DeclineV2 makes a DECLINE of version 2.
func DeclineV2() []byte {
	return frame(false, Decline, 0x20, append(append(make([]byte, 8), 3, 3, 0, 0, 2<<4, 0, 0, 0), make([]byte, 16)...))
}

// Reason returns the code in a DECLINE.
func Reason(decline []byte) uint32 { return binary.BigEndian.Uint32(decline[16:]) }

// ProposalD1v6 makes a PROPOSAL of version 1 that offers SMC-D, from IPv6 networks, of which all but the first are the same.
func ProposalD1v6(prefixes int, prefix [16]byte, bits byte) []byte {
	msg := ProposalD1([4]byte{}, 0)
	area := msg[: len(msg)-4 : len(msg)-4]
	area[len(area)-1] = byte(prefixes)
	for range prefixes {
		area = append(append(area, prefix[:]...), bits)
	}
	msg = append(area, msg[:4]...)
	return Resize(msg, len(msg))
}
