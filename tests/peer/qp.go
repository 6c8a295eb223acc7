// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

const (
	// Packets that are not acknowledged are sent again after resendPacketsAfter, or resendAfterNAK. Each time that this has no effect,
	// the wait doubles, up to resendAtMost. At most resendBurst packets are sent at a time, since the other side may be slow.
	resendPacketsAfter = 300 * time.Millisecond
	resendAtMost       = 5 * time.Second
	resendAfterNAK     = 5 * time.Millisecond
	resendTick         = 5 * time.Millisecond
	resendBurst        = 64
)

// Manner is how a queue pair treats packets that it receives.
type Manner int

// Manners.
const (
	Polite  Manner = iota
	Deaf           // ignores all packets
	Busy           // has no receives: messages get an RNR NAK. Data is written
	Hostile        // answers with a NAK that breaks the connection
	Silent         // receives everything, and acknowledges nothing
)

// ErrRefused is the error of a queue pair that has received a final NAK.
var ErrRefused = errors.New("refused by the other side")

// QP is an end of a reliable connection. Several goroutines may use it.
type QP struct {
	Number uint32
	// Message gets the messages, on the goroutine that reads from the network. Set before Connect.
	Message func(msg []byte)
	// Written gets the immediate data of writes, and how many bytes were written, on the same goroutine. May be nil.
	Written func(imm, length uint32)

	host    *Adapter
	first   uint32 // PSN
	mu      sync.Mutex
	remote  netip.Addr
	peer    uint32 // its queue pair
	mtu     int
	manner  Manner
	regions map[uint32]*Region

	send    uint32 // next PSN
	unacked []*Packet
	due     time.Time // when those are sent again
	wait    time.Duration
	refused byte // syndrome of the NAK that was final

	expect  uint32 // PSN
	msn     uint32
	partial []byte // of a message
	to      []byte // of a region, where a write goes on
	length  uint32 // of all that it writes
	ident   uint16
	tos     byte // of the last packet that has come
	again   int  // packets that were received again
}

// Region registers memory.
func (q *QP) Region(r *Region) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.regions[r.Rkey] = r
}

// Forget removes the registration of memory.
func (q *QP) Forget(r *Region) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.regions, r.Rkey)
}

// Connect makes the queue pair send and receive. code is that of the path MTU.
func (q *QP) Connect(remote netip.Addr, qpn, psn uint32, code byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remote, q.peer, q.expect, q.mtu = remote, qpn, psn, 128<<code
}

// To is the address and the number of the queue pair that it is connected to.
func (q *QP) To() (netip.Addr, uint32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.remote, q.peer
}

// FirstPSN is the packet sequence number that it begins to send with.
func (q *QP) FirstPSN() uint32 { return q.first }

// SetManner changes how the queue pair treats packets that it receives.
func (q *QP) SetManner(m Manner) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.manner = m
}

// Send sends a message. It does not wait for the acknowledgement.
func (q *QP) Send(msg []byte) error {
	return q.post([4]byte{SendFirst, SendMiddle, SendLast, SendOnly}, &Packet{Solicited: true}, msg)
}

// SendImm sends a message with immediate data.
func (q *QP) SendImm(msg []byte) error {
	return q.post([4]byte{SendFirst, SendMiddle, SendLastImm, SendOnlyImm}, &Packet{}, msg)
}

// Write writes to the other side's memory.
func (q *QP) Write(addr uint64, rkey uint32, data []byte) error {
	p := &Packet{Addr: addr, Rkey: rkey, Length: uint32(len(data))}
	return q.post([4]byte{WriteFirst, WriteMiddle, WriteLast, WriteOnly}, p, data)
}

// WriteImm writes with immediate data.
func (q *QP) WriteImm(addr uint64, rkey uint32, data []byte, imm uint32) error {
	p := &Packet{Addr: addr, Rkey: rkey, Length: uint32(len(data)), Imm: imm, Solicited: true}
	return q.post([4]byte{WriteFirst, WriteMiddle, WriteLastImm, WriteOnlyImm}, p, data)
}

// post sends a message or write in one packet or more. The opcodes are those of a first, middle, last and only packet.
func (q *QP) post(opcodes [4]byte, like *Packet, data []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	parts := slices.Collect(slices.Chunk(data, q.mtu))
	if len(parts) == 0 {
		parts = [][]byte{nil}
	}
	for i, part := range parts {
		p := *like
		p.Payload = slices.Clone(part)
		switch last := len(parts) - 1; {
		case last == 0:
			p.Opcode = opcodes[3]
		case i == 0:
			p.Opcode = opcodes[0]
		case i == last:
			p.Opcode = opcodes[2]
		default:
			p.Opcode = opcodes[1]
		}
		p.AckReq = i == len(parts)-1
		p.Solicited = like.Solicited && p.AckReq
		if err := q.next(&p); err != nil {
			return err
		}
	}
	return nil
}

// Raw sends a packet as the next of the connection.
func (q *QP) Raw(p *Packet) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.next(p)
}

func (q *QP) next(p *Packet) error {
	p.PSN = q.send
	q.send = (q.send + 1) & psnMask
	if len(q.unacked) == 0 {
		q.later()
	}
	q.unacked = append(q.unacked, p)
	return q.put(p)
}

func (q *QP) put(p *Packet) error {
	p.Src, p.Dst, p.QPN, p.SourcePort, p.Fingerprint = q.host.Addr, q.remote, q.peer, 0xc000|uint16(q.Number&0xfff), q.ident
	q.ident++
	return q.host.net.Write(p.Marshal())
}

// Flush waits until everything that was sent is acknowledged.
func (q *QP) Flush(ctx context.Context) error {
	ticker := time.NewTicker(resendTick)
	defer ticker.Stop()
	for {
		q.mu.Lock()
		left, refused := len(q.unacked), q.refused
		q.mu.Unlock()
		if refused != 0 {
			return fmt.Errorf("%w: syndrome %#x", ErrRefused, refused)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%d packets are not acknowledged: %w", left, ctx.Err())
		}
	}
}

// repeat sends packets again that have not been acknowledged for too long.
func (q *QP) repeat() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.unacked) == 0 || q.refused != 0 || time.Now().Before(q.due) {
		return
	}
	q.due = time.Now().Add(q.wait)
	q.wait = min(2*q.wait, resendAtMost)
	for _, p := range q.unacked[:min(len(q.unacked), resendBurst)] {
		if q.put(p) != nil {
			return
		}
	}
}

// later starts the wait for an acknowledgement. The caller holds the lock.
func (q *QP) later() {
	q.wait = resendPacketsAfter
	q.due = time.Now().Add(q.wait)
}

// Again is how many packets have come again because the other side has not seen an acknowledgement.
func (q *QP) Again() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.again
}

// TOS is the type of service of the last packet that was received.
func (q *QP) TOS() byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.tos
}

// Refused reports whether the queue pair has received a final NAK.
func (q *QP) Refused() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.refused != 0
}
