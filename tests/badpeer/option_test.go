// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// Malformed options.
var (
	unpadded      = peer.Option[2:]
	odd           = []byte{254, 7, 0xe2, 0xd4, 0xc3, 0xd9, 0}
	longer        = []byte{254, 10, 0xe2, 0xd4, 0xc3, 0xd9, 1, 2, 3, 4}
	tooShort      = []byte{254, 4, 0xe2, 0xd4}
	cutOff        = []byte{1, 1, 254, 6}
	noLength      = []byte{254, 0, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0}
	length1       = []byte{254, 1, 0xe2, 0xd4, 0xc3, 0xd9, 0, 0}
	otherID       = []byte{254, 6, 0xe2, 0xd4, 0xc3, 0xc4, 1, 1}
	otherKind     = []byte{253, 6, 0xe2, 0xd4, 0xc3, 0xd9, 1, 1}
	fastOpen      = []byte{254, 4, 0xf9, 0x89}
	unknownOption = []byte{200, 8, 254, 6, 0xe2, 0xd4, 0xc3, 0xd9}
	endOfOptions  = []byte{0, 0, 0, 0}
	md5           = append([]byte{19, 18}, make([]byte, 16)...)
	// 20 bytes that Linux itself sends: SACK, timestamps, window scale.
	usualOptions = []byte{4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7}
)

// fullOptions is a full option space, with the option last.
var fullOptions = slices.Concat(peer.MSS, usualOptions, bytes.Repeat([]byte{1}, 12), peer.Option)

// optionsByClients are SYNs with malformed options, and with unusual ones that are right.
var optionsByClients = []handshakeCase{
	{name: "no option", want: works, steps: []step{plain}},
	{name: "no option over IPv6", ipv6: true, want: works, steps: []step{plain}},
	{name: "all options", want: works, steps: []step{syn(peer.MSS, usualOptions, peer.Option), agreed, putHello(0, dec1)}},
	{name: "option without padding", want: works, steps: []step{syn(peer.MSS, unpadded), agreed, putHello(0, dec1)}},
	{name: "option first", want: works, steps: []step{syn(unpadded, []byte{1, 1}, peer.MSS), agreed, putHello(0, dec1)}},
	{name: "option at an odd place", want: works, steps: []step{syn(peer.MSS, []byte{1}, unpadded), agreed, putHello(0, dec1)}},
	{name: "option twice", want: works, steps: []step{syn(peer.MSS, peer.Option, peer.Option), agreed, putHello(0, dec1)}},
	{name: "longer option", want: works, steps: []step{syn(peer.MSS, longer), agreed, putHello(0, dec1)}},
	{name: "full options", want: works, steps: []step{syn(fullOptions), agreed, putHello(0, dec1)}},
	{name: "option behind a Fast Open one", want: works, steps: []step{syn(peer.MSS, fastOpen, peer.Option), agreed, putHello(0, dec1)}},
	{name: "odd length", want: works, steps: []step{syn(peer.MSS, odd), refused}},
	{name: "too short", want: works, steps: []step{syn(peer.MSS, tooShort), refused}},
	{name: "cut off", want: works, steps: []step{syn(peer.MSS, cutOff), refused}},
	{name: "length 0", want: never, steps: []step{onlySYN(peer.MSS, noLength)}},
	{name: "length 1", want: never, steps: []step{onlySYN(peer.MSS, length1)}},
	{name: "another magic", want: works, steps: []step{syn(peer.MSS, otherID), refused}},
	{name: "another kind", want: works, steps: []step{syn(peer.MSS, otherKind), refused}},
	{name: "inside another option", want: works, steps: []step{syn(peer.MSS, unknownOption), refused}},
	{name: "behind the end of the list", want: works, steps: []step{syn(peer.MSS, endOfOptions, peer.Option), refused}},
	{name: "behind an impossible option", want: never, steps: []step{onlySYN(peer.MSS, noLength, peer.Option)}},
	{name: "Fast Open alone", want: works, steps: []step{syn(peer.MSS, fastOpen), refused}},
	{name: "signed", want: never, steps: []step{onlySYN(peer.MSS, md5, peer.Option)}},
	{name: "SYN twice", want: works, steps: []step{halfOpen(peer.Option), repeatSYN(0, peer.Option), answered, agreed, ack, putHello(0, dec1)}},
	{name: "RST for SYN-ACK", want: never, steps: []step{halfOpen(peer.Option), rst}},
	{name: "ACK late", want: works, steps: []step{halfOpen(peer.Option), answeredAgain, agreed, ack, putHello(0, dec1)}},
	{name: "ACK lost, DECLINE comes", want: works, steps: []step{halfOpen(peer.Option), agreed, acknowledge, putHello(0, dec1)}},
	{name: "PROPOSAL comes in SYN", want: works, steps: []step{synWith(d1), agreed, put(d1), get(peer.Accept), put(confirm1), declined(reasonInternal)}},
	// The first answer stays valid, even if another host sends SYNs with the peer's address.
	{name: "SYN again without option", want: works, steps: []step{halfOpen(peer.Option), agreed, repeatSYN(0), answered, ack, putHello(0, dec1)}},
	{name: "stray SYN without option", want: works, steps: []step{halfOpen(peer.Option), agreed, repeatSYN(1 << 20), ack, putHello(0, dec1)}},
	{name: "stray SYN without option later", want: works, steps: []step{smc, repeatSYN(1 << 20), putHello(0, dec1)}},
	{name: "stray SYN with option", want: works, steps: []step{halfOpen(), refused, repeatSYN(1<<20, peer.Option), ack}},
}

// halfOpen sends a SYN and does not acknowledge the SYN-ACK.
func halfOpen(options ...[]byte) step {
	return func(s *tcpSession) error {
		s.Mute = true
		return s.HalfOpen(s.ctx, s.service, append(bytes.Clone(peer.MSS), slices.Concat(options...)...))
	}
}

// ack acknowledges it.
func ack(s *tcpSession) error {
	s.Mute = false
	return s.Put(s.Segment(peer.ACK))
}

// acknowledge acknowledges segments from now on, and sends none by itself.
func acknowledge(s *tcpSession) error {
	s.Mute = false
	return nil
}

// repeatSYN sends a SYN beside the sequence; for 0, the first one again.
func repeatSYN(beside uint32, options ...[]byte) step {
	return func(s *tcpSession) error {
		seg := s.Segment(peer.SYN)
		seg.Seq, seg.Ack = s.Next-1+beside, 0
		seg.Options = peer.Pad(append(bytes.Clone(peer.MSS), slices.Concat(options...)...))
		return s.Put(seg)
	}
}

// answered waits for the second SYN-ACK.
func answered(s *tcpSession) error {
	return s.Until(s.ctx, func() bool { return s.Answers > 1 })
}

// answeredAgain waits for a SYN-ACK that the kernel repeats by itself.
func answeredAgain(s *tcpSession) error {
	begin := time.Now()
	if err := answered(s); err != nil {
		return err
	}
	if took := time.Since(begin); took < 500*time.Millisecond {
		return fmt.Errorf("repeated after %v", took)
	}
	return nil
}

// synWith sends data with the SYN, without TCP Fast Open.
func synWith(data []byte) step {
	return func(s *tcpSession) error {
		s.Kernel = s.service
		seg := s.Segment(peer.SYN, data...)
		seg.Options = slices.Concat(peer.MSS, peer.Option)
		if err := s.Put(seg); err != nil {
			return err
		}
		s.Next++
		if err := s.Until(s.ctx, func() bool { return s.Answer != nil }); err != nil {
			return err
		}
		return ack(s)
	}
}

// onlySYN sends a SYN that TCP itself drops, at least in newer kernels: signed with an unknown key, or with an option of an
// impossible length.
func onlySYN(options ...[]byte) step {
	return func(s *tcpSession) error {
		s.Kernel = s.service
		seg := s.Segment(peer.SYN)
		seg.Options = peer.Pad(slices.Concat(options...))
		return s.Put(seg)
	}
}

// TestOptionByClients has clients send malformed and repeated SYNs to our server.
func TestOptionByClients(t *testing.T) {
	guest.UseNull(t, true)
	runServers(t, openPeers(t), optionsByClients, 3)
}

// answers to our SYN.
var optionsByServers = []handshakeCase{
	{name: "no option", want: works, steps: []step{synAck(peer.MSS)}},
	{name: "no option over IPv6", ipv6: true, want: works, steps: []step{synAck(peer.MSS)}},
	{name: "odd length", want: works, steps: []step{synAck(peer.MSS, odd)}},
	{name: "too short", want: works, steps: []step{synAck(peer.MSS, tooShort)}},
	{name: "another magic", want: works, steps: []step{synAck(peer.MSS, otherID)}},
	{name: "behind the end of the list", want: works, steps: []step{synAck(peer.MSS, endOfOptions, peer.Option)}},
	{name: "inside another option", want: works, steps: []step{synAck(peer.MSS, unknownOption)}},
	{name: "longer option", want: works, steps: []step{synAck(peer.MSS, longer), get(peer.Proposal), putHello(0, dec1)}},
	{name: "full options", want: works, steps: []step{synAck(fullOptions), get(peer.Proposal), putHello(0, dec1)}},
	{name: "SYN repeated", want: works, steps: []step{listen, answered, served, get(peer.Proposal), putHello(0, dec1)}},
	{name: "RST for SYN", want: fails(unix.ECONNREFUSED), steps: []step{listen, refuse}},
	{name: "simultaneous open", want: works, steps: []step{listen, simultaneous}},
	{name: "wrong acknowledgement with option", want: works, steps: []step{listen, badAck(peer.MSS, peer.Option), plainAnswer}},
	{name: "wrong acknowledgement without option", want: works, steps: []step{listen, badAck(peer.MSS), served, get(peer.Proposal), putHello(0, dec1)}},
	{name: "SYN-ACK again without option", want: works, steps: []step{served, again(peer.MSS), get(peer.Proposal), putHello(0, dec1)}},
	{name: "SYN-ACK again with option", want: works, steps: []step{synAck(peer.MSS), again(peer.MSS, peer.Option)}},
}

func listen(s *tcpSession) error { return s.Listen(s.ctx) }

// refuse answers as a host without a listener does.
func refuse(s *tcpSession) error {
	seg := s.Segment(peer.RST | peer.ACK)
	seg.Seq = 0
	return s.Put(seg)
}

var plainAnswer = synAck(peer.MSS)

// badAck acknowledges data that the kernel has not sent. The kernel answers with a reset.
func badAck(options ...[]byte) step {
	return func(s *tcpSession) error {
		seg := s.Segment(peer.SYN | peer.ACK)
		seg.Ack += 1000
		seg.Options = slices.Concat(options...)
		if err := s.Put(seg); err != nil {
			return err
		}
		if err := s.Ended(s.ctx); err != nil {
			return err
		}
		s.Reset = false
		return nil
	}
}

// again repeats the SYN-ACK with other options.
func again(options ...[]byte) step {
	return func(s *tcpSession) error {
		seg := s.Segment(peer.SYN | peer.ACK)
		seg.Seq = s.Next - 1
		seg.Options = slices.Concat(options...)
		return s.Put(seg)
	}
}

// simultaneous answers our SYN with a SYN, and our SYN-ACK with a SYN-ACK.
func simultaneous(s *tcpSession) error {
	seg := s.Segment(peer.SYN)
	seg.Ack = 0
	seg.Options = slices.Concat(peer.MSS, peer.Option)
	if err := s.Push(seg); err != nil {
		return err
	}
	if err := answered(s); err != nil {
		return err
	}
	seg = s.Segment(peer.SYN | peer.ACK)
	seg.Seq--
	seg.Options = slices.Concat(peer.MSS, peer.Option)
	return s.Put(seg)
}

// TestOptionByServers has servers answer the SYN of our client with malformed and repeated SYN-ACKs.
func TestOptionByServers(t *testing.T) {
	guest.UseNull(t, true)
	runHandshakes(t, openPeers(t), optionsByServers, 4, (*handshakeCase).asClient)
}
