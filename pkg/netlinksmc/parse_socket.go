// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"time"
)

// Offsets of the parts of a socket's fixed header: four bytes, the addresses and other identity as struct inet_diag_sockid has
// them, the owner and the inode.
const (
	socketState    = 1
	socketMode     = 2
	socketShutdown = 3
	socketSport    = 4
	socketDport    = 6
	socketSrc      = 8
	socketDst      = 24
	socketIfindex  = 40
	socketCookie   = 44
	socketUID      = 52
	socketInode    = 56
	socketLen      = 64
)

// Sizes of the attributes' values. Newer kernels may append to them.
const (
	connInfoLen  = 76
	linkGroupLen = 147
	dmbLen       = 40
	dmbExtLen    = 56
	fallbackLen  = 8
	progressLen  = 48
)

// parseSocket decodes a message of sock_diag. It is written without the tables of the other decoders: there may be a
// hundred thousand sockets.
func parseSocket(b []byte) (Socket, error) {
	if len(b) < socketLen {
		return Socket{}, fmt.Errorf("socket of %d bytes, want %d or more", len(b), socketLen)
	}
	s := Socket{
		State:        SocketState(b[socketState]),
		Mode:         Mode(b[socketMode]),
		Shutdown:     Shutdown(b[socketShutdown]),
		Local:        parseAddr(b[socketSrc:], b[socketSport:]),
		Peer:         parseAddr(b[socketDst:], b[socketDport:]),
		BoundIfindex: binary.NativeEndian.Uint32(b[socketIfindex:]),
		// The cookie is two halves, the lower one first, whatever the byte order of the host.
		Cookie: uint64(binary.NativeEndian.Uint32(b[socketCookie:])) |
			uint64(binary.NativeEndian.Uint32(b[socketCookie+4:]))<<32,
		UID:   binary.NativeEndian.Uint32(b[socketUID:]),
		Inode: binary.NativeEndian.Uint64(b[socketInode:]),
	}
	for b = b[socketLen:]; len(b) > 0; {
		typ, value, rest, err := nextAttr(b)
		if err != nil {
			return Socket{}, err
		}
		b = rest
		if err := s.setAttr(typ, value); err != nil {
			return Socket{}, err
		}
	}
	if s.Mode == ModeTCP && s.Fallback == nil {
		s.Fallback = &Fallback{}
	}
	return s, nil
}

// setAttr decodes one attribute. Unknown ones are ignored.
func (s *Socket) setAttr(typ uint16, b []byte) error {
	short := func(name string, want int) error {
		if len(b) < want {
			return fmt.Errorf("%s: %w", name, errLength(len(b), fmt.Sprintf("%d or more", want)))
		}
		return nil
	}
	switch typ {
	case AttrDiagConninfo:
		if err := short("DIAG_CONNINFO", connInfoLen); err != nil {
			return err
		}
		s.Conn = parseConnInfo(b)
	case AttrDiagLgrinfo:
		if err := short("DIAG_LGRINFO", linkGroupLen); err != nil {
			return err
		}
		s.LinkGroup = parseLinkGroupInfo(b)
	case AttrDiagShutdown:
		if err := short("DIAG_SHUTDOWN", 1); err != nil {
			return err
		}
		s.Shutdown = Shutdown(b[0])
	case AttrDiagDmbinfo:
		if err := short("DIAG_DMBINFO", dmbLen); err != nil {
			return err
		}
		s.DMB = parseDMBInfo(b)
	case AttrDiagFallback:
		if err := short("DIAG_FALLBACK", fallbackLen); err != nil {
			return err
		}
		s.setFallback(b)
	case AttrDiagProgress:
		if err := short("DIAG_PROGRESS", progressLen); err != nil {
			return err
		}
		s.Progress = parseProgress(b)
	}
	return nil
}

// setFallback decodes the reasons. The kernel sends them, as zeros, for a socket that has not fallen back, too.
func (s *Socket) setFallback(b []byte) {
	f := Fallback{
		Reason:        Reason(binary.NativeEndian.Uint32(b)),
		PeerDiagnosis: Reason(binary.NativeEndian.Uint32(b[4:])),
	}
	if s.Mode == ModeTCP {
		s.Fallback = &f
	}
}

// parseAddr decodes 16 bytes of address and a port in network byte order. The IPv6 wildcard address and the address of a socket
// without one become the IPv4 wildcard address.
func parseAddr(addr, port []byte) netip.AddrPort {
	var a netip.Addr
	if [12]byte(addr[4:16]) == [12]byte{} {
		a = netip.AddrFrom4([4]byte(addr))
	} else {
		a = netip.AddrFrom16([16]byte(addr))
	}
	return netip.AddrPortFrom(a, binary.BigEndian.Uint16(port))
}

func parseConnInfo(b []byte) *ConnInfo {
	return &ConnInfo{
		Token:        binary.NativeEndian.Uint32(b),
		SndbufSize:   binary.NativeEndian.Uint32(b[4:]),
		RMBESize:     binary.NativeEndian.Uint32(b[8:]),
		PeerRMBESize: binary.NativeEndian.Uint32(b[12:]),
		RxProd:       parseCursor(b[16:]),
		RxCons:       parseCursor(b[24:]),
		TxProd:       parseCursor(b[32:]),
		TxCons:       parseCursor(b[40:]),
		RxProdFlags:  b[48],
		RxConnFlags:  b[49],
		TxProdFlags:  b[50],
		TxConnFlags:  b[51],
		TxPrep:       parseCursor(b[52:]),
		TxSent:       parseCursor(b[60:]),
		TxFin:        parseCursor(b[68:]),
	}
}

func parseProgress(b []byte) *Progress {
	return &Progress{
		Sent:      binary.NativeEndian.Uint64(b),
		Acked:     binary.NativeEndian.Uint64(b[8:]),
		Received:  binary.NativeEndian.Uint64(b[16:]),
		Read:      binary.NativeEndian.Uint64(b[24:]),
		Age:       time.Duration(min(binary.NativeEndian.Uint64(b[32:]), maxAge)) * time.Millisecond,
		Failovers: binary.NativeEndian.Uint64(b[40:]),
	}
}

// maxAge keeps an age in milliseconds within the range of a duration.
const maxAge = uint64(math.MaxInt64 / time.Millisecond)

// parseCursor decodes a cursor: two unused bytes, the wrap count and the offset.
func parseCursor(b []byte) Cursor {
	return Cursor{Wrap: binary.NativeEndian.Uint16(b[2:]), Count: binary.NativeEndian.Uint32(b[4:])}
}

func parseLinkGroupInfo(b []byte) *LinkGroupInfo {
	return &LinkGroupInfo{
		LinkID:  b[0],
		IBDev:   cString(b[1:65]),
		IBPort:  b[65],
		GID:     cString(b[66:106]),
		PeerGID: cString(b[106:146]),
		Role:    Role(b[146]),
	}
}

// parseDMBInfo decodes the SMC-D side. Four bytes of padding follow the link group's ID.
func parseDMBInfo(b []byte) *DMBInfo {
	d := &DMBInfo{
		LinkGroupID: binary.NativeEndian.Uint32(b),
		PeerGID:     binary.NativeEndian.Uint64(b[8:]),
		GID:         binary.NativeEndian.Uint64(b[16:]),
		Token:       binary.NativeEndian.Uint64(b[24:]),
		PeerToken:   binary.NativeEndian.Uint64(b[32:]),
	}
	if len(b) >= dmbExtLen {
		d.PeerExtGID = Some(binary.NativeEndian.Uint64(b[40:]))
		d.ExtGID = Some(binary.NativeEndian.Uint64(b[48:]))
	}
	return d
}
