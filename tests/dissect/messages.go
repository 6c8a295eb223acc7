// SPDX-License-Identifier: Apache-2.0

package dissect

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/smckit/smckit/tests/peer"
)

// GapLength explains why Wireshark does not read LLC messages of version 2 from little-endian hosts.
const GapLength = "Linux writes the length in its own byte order, the dissector reads it as big-endian"

// Kind is the way by which a message is sent.
type Kind string

// The kinds.
const (
	Option    Kind = "option"    // those of a SYN
	CLC       Kind = "CLC"       // in the TCP stream
	LLC       Kind = "LLC"       // a SEND over RoCE
	CDC       Kind = "CDC"       // a SEND over RoCE
	Immediate Kind = "immediate" // a write over RoCE with immediate data
)

// Message is a message from one side to the other.
type Message struct {
	Kind  Kind
	Name  string // as Wireshark has it
	Frame int    // of the capture, from 1
	Src   netip.Addr
	Bytes []byte
	Again bool // sent again because it was not acknowledged
	at    int  // in its packet
}

const (
	ethernetHeader = 14
	ipHeader       = 20
	udpHeader      = 8
	bthLength      = 12
	clcHeader      = 8
	llcHeader      = 4
	cdcLength      = 44
	protocolTCP    = 6
	protocolUDP    = 17
	flagSYN        = 0x02
	flagACK        = 0x10
	typeCDC        = 0xfe
)

var clcNames = map[byte]string{1: "Proposal", 2: "Accept", 3: "Confirm", 4: "Decline"}

var llcNames = map[byte]string{
	1: "Confirm Link", 2: "Add Link", 3: "Add Link Continuation", 4: "Delete Link", 5: "Request Add Link",
	6: "Confirm Rkey", 7: "Test Link", 9: "Delete Rkey",
}

// sent identifies a packet, so that repetitions are recognised: by addresses, ports or a queue pair, and a sequence number.
type sent struct {
	src, dst netip.Addr
	flow     uint64
	sequence uint32
}

// Messages returns the messages in an Ethernet capture between hosts that send nothing else by TCP and RoCE over IPv4.
func (c *Capture) Messages() ([]Message, error) {
	if c.Link != Ethernet {
		return nil, fmt.Errorf("a capture of link %d, not of Ethernet", c.Link)
	}
	known := map[sent]bool{}
	var all []Message
	for i, p := range c.Packets {
		if len(p) < ethernetHeader+ipHeader || binary.BigEndian.Uint16(p[12:]) != 0x0800 {
			continue
		}
		ip := p[ethernetHeader:]
		read := map[byte]func([]byte, map[sent]bool) (*Message, error){protocolTCP: segment, protocolUDP: datagram}[ip[9]]
		if read == nil {
			continue
		}
		m, err := read(ip, known)
		if err != nil {
			return nil, fmt.Errorf("packet %d: %w", i+1, err)
		}
		if m == nil {
			continue
		}
		m.Frame = i + 1
		m.at += ethernetHeader
		m.Src = netip.AddrFrom4([4]byte(ip[12:]))
		all = append(all, *m)
	}
	return all, nil
}

// segment decodes a TCP segment. It returns nil if the segment contains no message.
func segment(ip []byte, known map[sent]bool) (*Message, error) {
	be := binary.BigEndian
	end := int(be.Uint16(ip[2:]))
	if end > len(ip) || end < ipHeader+20 {
		return nil, fmt.Errorf("%d bytes of IP in %d", end, len(ip))
	}
	tcp := ip[ipHeader:end]
	head := int(tcp[12]>>4) * 4
	if head < 20 || head > len(tcp) {
		return nil, fmt.Errorf("a header of TCP of %d bytes", head)
	}
	m := &Message{Kind: CLC, Bytes: tcp[head:], at: ipHeader + head}
	switch tcp[13] & (flagSYN | flagACK) {
	case flagSYN:
		m = &Message{Kind: Option, Name: "SYN", Bytes: tcp[20:head], at: ipHeader + 20}
	case flagSYN | flagACK:
		m = &Message{Kind: Option, Name: "SYN, ACK", Bytes: tcp[20:head], at: ipHeader + 20}
	}
	if len(m.Bytes) == 0 {
		return nil, nil
	}
	m.Again = again(ip, known, uint64(be.Uint32(tcp)), be.Uint32(tcp[4:]))
	if m.Kind == Option {
		return m, nil
	}
	if m.Name = Name(CLC, m.Bytes); m.Name == "" {
		return nil, fmt.Errorf("no message of CLC: % x", m.Bytes)
	}
	return m, nil
}

// again reports whether a packet has been seen before, and records it.
func again(ip []byte, known map[sent]bool, flow uint64, sequence uint32) bool {
	s := sent{netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:])), flow, sequence}
	was := known[s]
	known[s] = true
	return was
}

// datagram decodes a RoCEv2 packet. It returns nil if the packet completes no message.
func datagram(ip []byte, known map[sent]bool) (*Message, error) {
	p, err := peer.ParsePacket(ip)
	if err != nil {
		return nil, err
	}
	m := &Message{Kind: LLC, Bytes: p.Payload, at: ipHeader + udpHeader + bthLength}
	switch p.Opcode {
	case peer.SendOnly:
		if len(m.Bytes) > 0 && m.Bytes[0] == typeCDC {
			m.Kind = CDC
		}
		m.Name = Name(m.Kind, m.Bytes)
	case peer.WriteOnlyImm, peer.WriteLastImm:
		m = &Message{Kind: Immediate, Name: "Immediate", Bytes: binary.BigEndian.AppendUint32(nil, p.Imm)}
	case peer.SendFirst, peer.SendMiddle, peer.SendLast, peer.SendLastImm, peer.SendOnlyImm:
		return nil, fmt.Errorf("opcode %d, of which SMC-R has no use", p.Opcode)
	default:
		return nil, nil
	}
	if m.Name == "" {
		return nil, fmt.Errorf("no message of LLC or CDC: % x", m.Bytes)
	}
	const byRoCE = 1 << 32
	m.Again = again(ip, known, byRoCE|uint64(p.QPN), p.PSN)
	return m, nil
}

// Name returns Wireshark's name of a CLC, LLC or CDC message, or "" for other data.
func Name(kind Kind, msg []byte) string {
	switch {
	case kind == CLC && len(msg) >= clcHeader && int(binary.BigEndian.Uint16(msg[5:])) == len(msg):
		return clcNames[msg[4]]
	case kind == LLC && len(msg) >= llcHeader:
		return llcName(msg)
	case kind == CDC && len(msg) == cdcLength:
		return "CDC Message"
	default:
		return ""
	}
}

// llcName returns "" for a message of no known type.
func llcName(msg []byte) string {
	name, known := llcNames[msg[0]&0x0f]
	switch version := msg[0] >> 4; {
	case !known || version != 0 && version != 2:
		return ""
	case version == 2:
		name += " (v2)"
	}
	if msg[3]&0x80 != 0 {
		name += "(Resp)"
	}
	return name
}

// GapRMBs explains why Wireshark does not read ADD LINK of version 2.
const GapRMBs = "Linux has the RMBs in ADD LINK elsewhere than the dissector looks for them"

// ListsRMBs reports whether GapRMBs applies to a message.
func (m *Message) ListsRMBs() bool { return m.Kind == LLC && m.Name == "Add Link (v2)" }

// LittleLength reports whether GapLength applies to a message.
func (m *Message) LittleLength() bool {
	return m.Kind == LLC && m.Bytes[0]&0xf0 == 0x20 && int(binary.LittleEndian.Uint16(m.Bytes[1:])) == len(m.Bytes)
}

// BigLengths returns the capture with those lengths as if all hosts were big-endian, so that Wireshark can read the rest.
func (c *Capture) BigLengths(messages []Message) *Capture {
	clone := c.Clone()
	for _, m := range messages {
		if m.LittleLength() {
			b := clone.Packets[m.Frame-1][m.at:]
			b[1], b[2] = b[2], b[1]
		}
	}
	return clone
}
