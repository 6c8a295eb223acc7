// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"bytes"
	"encoding/binary"
)

// Types of LLC messages of version 2, and of CDC messages.
const (
	ConfirmLink    = 0x21
	AddLink        = 0x22
	AddLinkCont    = 0x23
	DeleteLink     = 0x24
	RequestAddLink = 0x25
	ConfirmRkey    = 0x26
	TestLink       = 0x27
	DeleteRkey     = 0x29
	CDCType        = 0xfe
)

// Flags of LLC messages.
const (
	Response      = 0x80
	AllLinks      = 0x40 // DELETE LINK
	Orderly       = 0x20 // DELETE LINK
	Negative      = 0x20 // response to CONFIRM RKEY or DELETE RKEY
	RetryLater    = 0x10 // negative response to CONFIRM RKEY
	NoEyecatchers = 0x03 // CONFIRM LINK
)

// Reasons of DELETE LINK.
const (
	PathLost   = 0x00010000
	ByOperator = 0x00020000
	Violation  = 0x00040000 // of the protocol
)

const (
	MsgLength = 44 // of LLC messages of version 1, most of version 2, and CDC messages
	MTUCode   = 3  // 1024 bytes, as soft-RoCE has on an Ethernet
	SizeCode  = 2  // 64 KiB
)

// LLC makes an LLC message of version 2.
func LLC(kind, flags byte, body ...byte) []byte {
	m := make([]byte, max(MsgLength, 4+len(body)))
	m[0], m[3] = kind, flags
	binary.LittleEndian.PutUint16(m[1:], uint16(len(m)))
	copy(m[4:], body)
	return m
}

// encodeLLC turns a message of version 2 into one of the group's version: in version 1, types differ, and all messages have one length.
func (g *LinkGroup) encodeLLC(msg []byte) []byte {
	if !g.V1 || len(msg) != MsgLength || msg[0]&0xf0 != 0x20 {
		return msg
	}
	msg = bytes.Clone(msg)
	msg[0], msg[1], msg[2] = msg[0]&0xf, MsgLength, 0
	return msg
}

// decodeLLC turns a message of the group's version into one of version 2.
func (g *LinkGroup) decodeLLC(msg []byte) []byte {
	if !g.V1 || len(msg) != MsgLength || msg[0]&0xf0 != 0 {
		return msg
	}
	msg = bytes.Clone(msg)
	msg[0] |= 0x20
	return msg
}

// ConfirmLink makes the peer's CONFIRM LINK for the first link.
func (g *LinkGroup) ConfirmLink(flags, link byte) []byte { return ConfirmLinkOf(g.QP, flags, link) }

// ConfirmLinkOf makes a CONFIRM LINK for a link.
func ConfirmLinkOf(q *QP, flags, link byte) []byte {
	body := append(append(bytes.Clone(MAC), gid(q.host.Addr)...), byte(q.Number>>16), byte(q.Number>>8), byte(q.Number), link, 1, 2, 3, 4, 1, 255)
	return LLC(ConfirmLink, flags|NoEyecatchers, body...)
}

// LinkKey is the key and address of an RMB on a link.
type LinkKey struct {
	Link byte
	Rkey uint32
	Addr uint64
}

// ConfirmRkeyOf makes a CONFIRM RKEY for an RMB, with its keys on other links than the one that carries the message.
func ConfirmRkeyOf(r *Region, others ...LinkKey) []byte {
	be := binary.BigEndian
	body := be.AppendUint64(be.AppendUint32([]byte{byte(len(others))}, r.Rkey), r.Addr)
	for _, o := range others {
		body = be.AppendUint64(be.AppendUint32(append(body, o.Link), o.Rkey), o.Addr)
	}
	return LLC(ConfirmRkey, 0, body...)
}
