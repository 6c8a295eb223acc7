// SPDX-License-Identifier: Apache-2.0

package peer

import "encoding/binary"

// Flags of CDC messages: first those of the producer, then those of the connection state.
const (
	WriteBlocked    = 0x80
	UrgentPending   = 0x40
	UrgentPresent   = 0x20
	UpdateRequested = 0x10
	Failover        = 0x08
	DoneWriting     = 0x80
	Closed          = 0x40
	Aborted         = 0x20
)

// Cursor is a producer or consumer cursor: how often the stream has wrapped around the ring, and where it is in the ring.
type Cursor struct {
	Wrap  uint16
	Count uint32
}

// CursorAt is the cursor of a position in a stream whose ring has size bytes.
func CursorAt(pos uint64, size int) Cursor {
	return Cursor{uint16(pos / uint64(size)), uint32(pos % uint64(size))}
}

func (c Cursor) pos(size int) uint64 { return uint64(c.Wrap)*uint64(size) + uint64(c.Count) }

// CDC is a CDC message.
type CDC struct {
	Seq          uint16
	Token        uint32
	Prod, Cons   Cursor
	Flags, State byte
}

// Marshal encodes the message.
func (m CDC) Marshal() []byte {
	be := binary.BigEndian
	b := make([]byte, MsgLength)
	b[0], b[1] = CDCType, MsgLength
	be.PutUint16(b[2:], m.Seq)
	be.PutUint32(b[4:], m.Token)
	be.PutUint16(b[10:], m.Prod.Wrap)
	be.PutUint32(b[12:], m.Prod.Count)
	be.PutUint16(b[18:], m.Cons.Wrap)
	be.PutUint32(b[20:], m.Cons.Count)
	b[24], b[25] = m.Flags, m.State
	return b
}

func parseCDC(b []byte) CDC {
	be := binary.BigEndian
	return CDC{
		be.Uint16(b[2:]), be.Uint32(b[4:]),
		Cursor{be.Uint16(b[10:]), be.Uint32(b[12:])},
		Cursor{be.Uint16(b[18:]), be.Uint32(b[20:])},
		b[24], b[25],
	}
}

// Messages as immediate data, an extension that two of our modules agree to by VendorImmediate. The word has the lowest byte of the
// token, whether the writer is blocked, and how many bytes it has read since its last message.
const (
	VendorImmediate  = 0x02534b01
	ImmediateBlocked = 1 << 23
	ImmediateRead    = ImmediateBlocked - 1
)
