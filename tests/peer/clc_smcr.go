// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
)

// Offsets in an ACCEPT, or CONFIRM, of SMC-R.
const (
	AtRQPN      = 38
	AtRRkey     = 41
	AtRElement  = 45
	AtRToken    = 46
	AtRSizeMTU  = 50
	AtRAddr     = 52
	atRTrailer1 = 64 // of version 1
	AtRFCE      = 104
	AtRRelease  = AtRFCE + 1
	AtRMaxConns = AtRFCE + 36
	AtRMaxLinks = AtRFCE + 37
	AtRVendor   = AtRFCE + 40
)

// AtRoCEGID is where the GID is in a PROPOSAL of SMC-Rv2.
const AtRoCEGID = AtV2 + 8

// flagFirst is set in the header of ACCEPT and CONFIRM at first contact.
const flagFirst = 0x08

// EndR is what an ACCEPT or CONFIRM of SMC-R says about its sender.
type EndR struct {
	V1       bool // of version 1, which says nothing of what is last here
	First    bool // of its link group
	Addr     netip.Addr
	Host     netip.Addr // of which its peer ID is made; Addr if it is not set
	QPN, PSN uint32
	Rkey     uint32
	RMB      uint64 // its address
	Size     byte   // code of its size
	MTU      byte   // code
	Token    uint32
	MaxConns byte
	MaxLinks byte
	V20      bool // of release 0, which has no limits
	Vendor   uint32
}

// peerID makes a peer ID of an address.
func peerID(addr netip.Addr) []byte {
	a := addr.As4()
	return append([]byte{a[2], a[3]}, MAC...)
}

func gid(addr netip.Addr) []byte {
	a := addr.As16()
	return a[:]
}

// ProposalOf makes a PROPOSAL of a host that offers SMC-Rv2.
func ProposalOf(addr netip.Addr) []byte {
	msg := With(ProposalR2(), 8, peerID(addr)...)
	msg = With(msg, 32, MAC...)
	return With(msg, AtRoCEGID, gid(addr)...)
}

// ProposalOfV1 makes a PROPOSAL of a host that offers SMC-R of version 1 in a network.
func ProposalOfV1(addr netip.Addr, subnet netip.Prefix) []byte {
	msg := With(ProposalR(subnet.Masked().Addr().As4(), byte(subnet.Bits())), 8, peerID(addr)...)
	msg = With(msg, 16, gid(addr)...)
	return With(msg, 32, MAC...)
}

func put24(b []byte, v uint32) { b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v) }
func get24(b []byte) uint32    { return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2]) }

// Message makes the ACCEPT or CONFIRM.
func (e *EndR) Message(kind byte) []byte {
	be := binary.BigEndian
	m := make([]byte, AtRFCE, 200)
	host := e.Host
	if !host.IsValid() {
		host = e.Addr
	}
	copy(m[8:], peerID(host))
	copy(m[16:], gid(e.Addr))
	copy(m[32:], MAC)
	put24(m[AtRQPN:], e.QPN)
	be.PutUint32(m[AtRRkey:], e.Rkey)
	m[AtRElement] = 1
	be.PutUint32(m[AtRToken:], e.Token)
	m[AtRSizeMTU] = e.Size<<4 | e.MTU
	be.PutUint64(m[AtRAddr:], e.RMB)
	put24(m[61:], e.PSN)
	flags := byte(0)
	if e.First {
		flags = flagFirst
	}
	if e.V1 {
		return frame(false, kind, 0x10|flags, m[8:atRTrailer1])
	}
	copy(m[64:], EID)
	if !e.First {
		return frame(false, kind, 0x20, m[8:])
	}
	fce := make([]byte, 52)
	fce[0], fce[1] = 0x80, 2<<4
	copy(fce[4:], EID)
	if !e.V20 {
		fce[1] |= 1
		fce[36], fce[37] = e.MaxConns, e.MaxLinks
		be.PutUint32(fce[40:], e.Vendor)
	}
	m = append(m, fce...)
	if kind == Confirm {
		m = append(append(m, 1, 0, 0, 0), gid(e.Addr)...)
	}
	return frame(false, kind, 0x20|flags, m[8:])
}

// ParseR decodes our module's ACCEPT or CONFIRM.
func ParseR(m []byte) (*EndR, error) {
	be := binary.BigEndian
	v1 := len(m) == atRTrailer1+4 && m[7]&0xf3 == 0x10
	v2 := len(m) >= AtRFCE+4 && m[7]&0xf3 == 0x20 && bytes.Equal(m[64:96], EID)
	if !v1 && !v2 || m[AtRElement] != 1 {
		return nil, errors.New("not of SMC-R")
	}
	e := &EndR{
		V1: v1, First: m[7]&flagFirst != 0, Addr: netip.AddrFrom16([16]byte(m[16:])).Unmap(), QPN: get24(m[AtRQPN:]), PSN: get24(m[61:]),
		Rkey: be.Uint32(m[AtRRkey:]), RMB: be.Uint64(m[AtRAddr:]), Size: m[AtRSizeMTU] >> 4, MTU: m[AtRSizeMTU] & 15,
		Token: be.Uint32(m[AtRToken:]),
	}
	if !e.First || v1 {
		return e, nil
	}
	if len(m) < AtRFCE+52 {
		return nil, errors.New("first contact, but no extension")
	}
	e.V20 = m[AtRRelease]&15 == 0
	e.MaxConns, e.MaxLinks, e.Vendor = m[AtRMaxConns], m[AtRMaxLinks], be.Uint32(m[AtRVendor:])
	return e, nil
}
