// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"slices"
	"time"
)

// psnBefore compares PSNs.
func psnBefore(a, b uint32) bool { return (a-b)&0x800000 != 0 }

// receive handles a packet as the manner of the queue pair says.
func (q *QP) receive(p *Packet) {
	q.mu.Lock()
	if p.Src != q.remote || q.manner == Deaf {
		q.mu.Unlock()
		return
	}
	q.tos = p.TOS
	if p.Opcode == Acknowledge {
		q.acknowledged(p)
		q.mu.Unlock()
		return
	}
	msg, served := q.request(p)
	length := q.length
	q.mu.Unlock()
	if msg != nil && q.Message != nil {
		q.Message(msg)
	}
	if served && (p.Opcode == WriteLastImm || p.Opcode == WriteOnlyImm) && q.Written != nil {
		q.Written(p.Imm, length)
	}
}

// acknowledged removes acknowledged packets. The caller holds the lock.
func (q *QP) acknowledged(p *Packet) {
	arrived := p.PSN
	if p.Syndrome&syndromeKind != 0 {
		arrived = (p.PSN - 1) & psnMask
	}
	n := 0
	for n < len(q.unacked) && !psnBefore(arrived, q.unacked[n].PSN) {
		n++
	}
	q.unacked = slices.Delete(q.unacked, 0, n)
	switch {
	case p.Syndrome&syndromeKind == 0 && n > 0:
		q.later()
	case p.Syndrome&syndromeKind == 0:
	case p.Syndrome&syndromeKind == SyndromeRNR || p.Syndrome == SyndromeSequence:
		q.due = time.Now().Add(resendAfterNAK)
	default:
		q.refused = p.Syndrome
	}
}

// answer sends an acknowledgement. If it is lost, the other side sends again.
func (q *QP) answer(psn uint32, syndrome byte) {
	if q.manner == Silent {
		return
	}
	_ = q.put(&Packet{Opcode: Acknowledge, PSN: psn, Syndrome: syndrome, MSN: q.msn})
}

// request serves a packet of the other side. The caller holds the lock. Return: the message that it completes, and whether it
// has been served now.
func (q *QP) request(p *Packet) (msg []byte, served bool) {
	switch {
	case q.manner == Hostile:
		q.answer(p.PSN, SyndromeInvalid)
		return nil, false
	case psnBefore(p.PSN, q.expect): // it has come before, and the answer was lost
		q.again++
		q.answer((q.expect-1)&psnMask, SyndromeACK)
		return nil, false
	case p.PSN != q.expect:
		q.answer(q.expect, SyndromeSequence)
		return nil, false
	case q.manner == Busy && (p.Opcode <= SendOnlyImm || p.Opcode == WriteLastImm || p.Opcode == WriteOnlyImm):
		const ms = 14 // 1.28 of them
		q.answer(p.PSN, SyndromeRNR|ms)
		return nil, false
	}
	msg, ok := q.serve(p)
	if !ok {
		q.answer(p.PSN, SyndromeAccess)
		return nil, false
	}
	q.expect = (q.expect + 1) & psnMask
	last := p.Opcode != SendFirst && p.Opcode != SendMiddle && p.Opcode != WriteFirst && p.Opcode != WriteMiddle
	if last {
		q.msn++
	}
	if last || p.AckReq {
		q.answer(p.PSN, SyndromeACK)
	}
	return msg, true
}

// serve stores the payload. Return: false if the packet has no valid destination.
func (q *QP) serve(p *Packet) (msg []byte, ok bool) {
	switch p.Opcode {
	case SendOnly, SendOnlyImm:
		return p.Payload, true
	case SendFirst:
		q.partial = p.Payload
		return nil, true
	case SendMiddle:
		q.partial = append(q.partial, p.Payload...)
		return nil, true
	case SendLast, SendLastImm:
		return append(q.partial, p.Payload...), true
	case WriteFirst, WriteOnly, WriteOnlyImm:
		if p.Length == 0 && p.Opcode == WriteOnly { // no memory, so the key does not matter
			q.to = nil
			break
		}
		r := q.regions[p.Rkey]
		if r == nil || !r.has(p.Addr, p.Length) {
			return nil, false
		}
		q.to, q.length = r.Bytes[p.Addr-r.Addr:][:p.Length], p.Length
	}
	if p.Opcode > WriteOnlyImm || len(p.Payload) > len(q.to) {
		return nil, false
	}
	q.to = q.to[copy(q.to, p.Payload):]
	return nil, true
}
