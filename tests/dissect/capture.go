// SPDX-License-Identifier: Apache-2.0

// Package dissect decodes captures with Wireshark's dissector. It also finds the SMC-R messages in them without Wireshark, so
// that the two can be compared.
package dissect

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Link is pcap's number for the link layer of a capture.
type Link uint32

// The links.
const (
	Ethernet Link = 1
	Raw      Link = 101 // the header of IP
)

const (
	magic      = 0xa1b23c4d // with nanoseconds
	fileHeader = 24
	packetHead = 16
	mostBytes  = 1 << 18
)

// Capture is packets of one link, in the order in which they were sent.
type Capture struct {
	Link    Link
	Packets [][]byte
}

// Add appends a packet.
func (c *Capture) Add(packet []byte) { c.Packets = append(c.Packets, packet) }

// Clone returns a copy whose packets can be changed.
func (c *Capture) Clone() *Capture {
	clone := &Capture{Link: c.Link}
	for _, p := range c.Packets {
		clone.Add(slices.Clone(p))
	}
	return clone
}

// Marshal returns the capture as a pcap file. The times are not kept.
func (c *Capture) Marshal() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, magic)
	b = le.AppendUint16(le.AppendUint16(b, 2), 4)
	b = append(b, make([]byte, 8)...)
	b = le.AppendUint32(le.AppendUint32(b, mostBytes), uint32(c.Link))
	for _, p := range c.Packets {
		b = append(b, make([]byte, 8)...)
		b = le.AppendUint32(le.AppendUint32(b, uint32(len(p))), uint32(len(p)))
		b = append(b, p...)
	}
	return b
}

var errFormat = errors.New("not a pcap file with nanoseconds of a little-endian machine")

// Parse reads a pcap file as Marshal and the lab's wires write it. A last packet of which a part is missing is left out.
func Parse(b []byte) (*Capture, error) {
	le := binary.LittleEndian
	if len(b) < fileHeader || le.Uint32(b) != magic {
		return nil, errFormat
	}
	c := &Capture{Link: Link(le.Uint32(b[20:]))}
	for b = b[fileHeader:]; len(b) >= packetHead; {
		n, all := le.Uint32(b[8:]), le.Uint32(b[12:])
		if n > mostBytes || n != all {
			return nil, fmt.Errorf("packet %d: %d bytes of %d", len(c.Packets)+1, n, all)
		}
		if uint32(len(b)-packetHead) < n {
			break
		}
		c.Add(b[packetHead : packetHead+n])
		b = b[packetHead+n:]
	}
	return c, nil
}
