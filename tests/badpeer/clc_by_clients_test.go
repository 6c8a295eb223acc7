// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"slices"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

var (
	d1, d2   = peer.ProposalD1(network, 16), peer.ProposalD2()
	confirm1 = peer.AcceptD1(peer.Confirm)
	confirm2 = peer.AcceptD2(peer.Confirm)
	dec1     = peer.DeclineV1()
	dec2     = peer.DeclineV2()
)

// short is a message cut to a length, which its header says.
func short(msg []byte, length int) []byte {
	return append(peer.Resize(msg, length)[:length-4], msg[:4]...)
}

// long is a message with unknown bytes before its trailer, up to a length, which its header says.
func long(msg []byte, length int) []byte {
	at := len(msg) - 4
	return peer.Resize(slices.Concat(msg[:at], make([]byte, length-len(msg)), msg[at:]), length)
}

// proposalsByClients are what clients send first.
var proposalsByClients = []handshakeCase{
	{name: "version 1", want: works, steps: []step{smc, put(d1), get(peer.Accept), put(confirm1), declined(reasonInternal)}},
	{name: "version 2", want: works, steps: []step{smc, put(d2), get(peer.Accept), put(confirm2), declined(reasonInternal)}},
	{
		name: "version 1 over IPv6", ipv6: true, want: works,
		steps: []step{smc, put(peer.ProposalD1v6(1, network6, 64)), get(peer.Accept), put(confirm1), declined(reasonInternal)},
	},
	{name: "in single bytes", want: works, steps: []step{smc, each(1, d1), get(peer.Accept), each(1, confirm1), declined(reasonInternal)}},
	{name: "in sevens", want: works, steps: []step{smc, each(7, d2), get(peer.Accept), each(7, confirm2), declined(reasonInternal)}},
	{name: "the header alone, then the rest", want: works, steps: []step{smc, put(d1[:8]), put(d1[8:]), get(peer.Accept), put(confirm1), declined(reasonInternal)}},
	{name: "version 15", want: works, steps: []step{smc, put(peer.With(d2, 7, 0xf6)), get(peer.Accept), put(confirm2), declined(reasonInternal)}},
	{name: "nothing offered", want: works, steps: []step{smc, put(peer.ProposalNone()), declined(reasonNoDevice)}},
	{name: "no common path", want: works, steps: []step{smc, put(peer.ProposalR(network, 16)), declined(reasonNoDevice)}},
	{name: "another network", want: works, steps: []step{smc, put(peer.ProposalD1([4]byte{10, 98}, 16)), declined(reasonPrefix)}},
	{name: "another network of IPv6", ipv6: true, want: works, steps: []step{smc, put(peer.ProposalD1v6(8, [16]byte{0xfd, 1}, 64)), declined(reasonPrefix)}},
	{name: "no connections per group", want: works, steps: []step{smc, put(peer.With(peer.ProposalR2(), peer.AtMaxConns, 0)), declined(reasonConns)}},
	{name: "no links per group", want: works, steps: []step{smc, put(peer.With(peer.ProposalR2(), peer.AtMaxLinks, 0)), declined(reasonLinks)}},
	{name: "part of SMC-D out of range", want: works, steps: []step{smc, put(peer.With(d2, peer.AtD2Offset, 1, 33)), declined(reasonNoISMv2)}},
	{name: "data follows at once", want: works, steps: []step{smc, putHello(0, peer.ProposalR(network, 16)), declined(reasonNoDevice)}},
	{name: "data and FIN follow at once", want: works, steps: []step{smc, putHello(peer.FIN, peer.ProposalR(network, 16)), declined(reasonNoDevice)}},
	{name: "silence", want: expired, steps: []step{smc}},
	{name: "silence over IPv6", ipv6: true, want: expired, steps: []step{smc}},
	{name: "half a header", want: expired, steps: []step{smc, put(d1[:4])}},
	{name: "only a header", want: expired, steps: []step{smc, put(d1[:8])}},
	{name: "one byte missing", want: expired, steps: []step{smc, put(d1[:len(d1)-1])}},
	{name: "one byte a second", want: expired, steps: []step{smc, slowly(d1)}},
	{name: "length above content", want: expired, steps: []step{smc, put(peer.Resize(d1, len(d1)+4))}},
	{name: "half a header, FIN", want: dropped, steps: []step{smc, put(d1[:4]), fin}},
	{name: "truncated, FIN", want: dropped, steps: []step{smc, putFlags(peer.FIN, d1[:60])}},
	{name: "complete, FIN", want: dropped, steps: []step{smc, putFlags(peer.FIN, d1)}},
	{name: "truncated, RST", want: never, steps: []step{smc, put(d1[:60]), rst}},
	{name: "complete, RST", want: never, steps: []step{smc, put(d1), rst}},
	{name: "FIN", want: dropped, steps: []step{smc, fin}},
	{name: "RST", want: never, steps: []step{smc, rst}},
	{name: "garbage", want: dropped, steps: []step{smc, put([]byte("GET / HTTP/1.1\r\n\r\n"))}},
	{name: "zeros", want: dropped, steps: []step{smc, put(make([]byte, 1400))}},
	{name: "wrong eyecatcher", want: dropped, steps: []step{smc, put(peer.With(d1, 3, 0))}},
	{name: "wrong trailing eyecatcher", want: dropped, steps: []step{smc, put(peer.With(d1, -1, 0))}},
	{name: "type 0", want: dropped, steps: []step{smc, put(peer.With(d1, 4, 0))}},
	{name: "type 5", want: dropped, steps: []step{smc, put(peer.With(d1, 4, 5))}},
	{name: "type 255", want: dropped, steps: []step{smc, put(peer.With(d1, 4, 255))}},
	{name: "ACCEPT instead", want: dropped, steps: []step{smc, put(peer.AcceptD1(peer.Accept))}},
	{name: "CONFIRM instead", want: dropped, steps: []step{smc, put(confirm1)}},
	{name: "version 0", want: dropped, steps: []step{smc, put(peer.With(d1, 7, 0x01))}},
	{name: "length 0", want: dropped, steps: []step{smc, put(peer.Resize(d1, 0))}},
	{name: "length 7", want: dropped, steps: []step{smc, put(peer.Resize(d1, 7))}},
	{name: "length 8", want: dropped, steps: []step{smc, put(peer.Resize(d1, 8))}},
	{name: "length 11", want: dropped, steps: []step{smc, put(peer.Resize(d1, 11))}},
	{name: "length 12", want: dropped, steps: []step{smc, put(short(d1, 12))}},
	{name: "length 65535", want: dropped, steps: []step{smc, put(peer.Resize(d1, 65535))}},
	{name: "length below content", want: dropped, steps: []step{smc, put(short(d1, 60))}},
	{name: "more than the parts", want: dropped, steps: []step{smc, put(long(d1, len(d1)+4))}},
	{name: "as long as possible", want: dropped, steps: []step{smc, put(long(d1, 652))}},
	{name: "9 prefixes", want: dropped, steps: []step{smc, put(peer.With(d1, peer.AtV6Count, 9))}},
	{name: "8 prefixes that are not there", want: dropped, steps: []step{smc, put(peer.With(d1, peer.AtV6Count, 8))}},
	{name: "prefixes out of range", want: dropped, steps: []step{smc, put(peer.With(d1, peer.AtPrefixOffset, 0, 41))}},
	{name: "prefixes far away", want: dropped, steps: []step{smc, put(peer.With(d1, peer.AtPrefixOffset, 255, 255))}},
	{name: "9 EIDs", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtEIDs, 9))}},
	{name: "8 EIDs that are not there", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtEIDs, 8))}},
	{name: "9 GIDs", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtGIDs, 9))}},
	{name: "8 GIDs that are not there", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtGIDs, 8))}},
	{name: "part of version 2 missing", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtV2Offset, 0, 0))}},
	{name: "part of version 2 out of range", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtV2Offset, 0, 173))}},
	{name: "part of version 2 far away", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtV2Offset, 255, 255))}},
	{name: "SMC-Dv2 beyond the end", want: dropped, steps: []step{smc, put(peer.With(d2, peer.AtD2Offset, 1, 32))}},
	{name: "twice in a segment", want: dropped, steps: []step{smc, put(d1, d1)}},
	{name: "urgent", want: dropped, steps: []step{smc, urgent(d1), endsAtOnce}},
	{name: "urgent at once", want: dropped, steps: []step{smc, urgent(d1[:1]), endsAtOnce}},
	{name: "urgent, FIN", want: dropped, steps: []step{smc, urgent(d1), fin}},
	{name: "no window for the answer", want: expired, steps: []step{smc, window(0), put(d1)}},
	{name: "no window for the DECLINE for a while", want: works, steps: []step{smc, window(0), put(peer.ProposalNone()), window(1000), declined(reasonNoDevice)}},
}

// confirmsByClients are what clients send after our ACCEPT, or instead of waiting for it.
var confirmsByClients = []handshakeCase{
	{name: "DECLINE, then data", want: works, steps: []step{smc, put(dec1)}},
	{name: "DECLINE and data", want: works, steps: []step{smc, putHello(0, dec1)}},
	{name: "DECLINE and data over IPv6", ipv6: true, want: works, steps: []step{smc, putHello(0, dec2)}},
	{name: "DECLINE of version 2 and data", want: works, steps: []step{smc, putHello(0, dec2)}},
	{name: "DECLINE of version 15 and data", want: works, steps: []step{smc, putHello(0, peer.With(dec2, 7, 0xf0))}},
	{name: "DECLINE, data and FIN", want: works, steps: []step{smc, putHello(peer.FIN, dec1)}},
	{name: "DECLINE, out of sync", want: works, steps: []step{smc, put(peer.With(dec1, 7, 0x18))}},
	{name: "DECLINE without trailer", want: works, steps: []step{smc, putHello(0, peer.With(dec1, -4, 0, 0, 0, 0))}},
	{name: "DECLINE in single bytes", want: works, steps: []step{smc, each(1, dec1)}},
	{name: "DECLINE of version 1, too long", want: dropped, steps: []step{smc, put(peer.With(dec2, 7, 0x10))}},
	{name: "DECLINE of version 2, too short", want: dropped, steps: []step{smc, put(peer.With(dec1, 7, 0x20))}},
	{name: "DECLINE, truncated, FIN", want: dropped, steps: []step{smc, putFlags(peer.FIN, dec1[:27])}},
	{name: "DECLINE after ACCEPT", want: works, steps: []step{smc, put(d1), get(peer.Accept), putHello(0, dec1)}},
	{name: "DECLINE crosses ACCEPT", want: works, steps: []step{smc, putHello(0, d1, dec1), get(peer.Accept)}},
	{name: "CONFIRM at once", want: works, steps: []step{smc, putHello(0, d1, confirm1), get(peer.Accept), declined(reasonInternal)}},
	{name: "CONFIRM of version 2 for 1", want: works, steps: []step{smc, put(d1), get(peer.Accept), put(confirm2), declined(reasonVersion)}},
	{name: "CONFIRM of version 1 for 2", want: works, steps: []step{smc, put(d2), get(peer.Accept), put(confirm1), declined(reasonVersion)}},
	{name: "CONFIRM of SMC-R", want: works, steps: []step{smc, put(d1), get(peer.Accept), put(peer.AcceptR1(peer.Confirm)), declined(reasonMode)}},
	{name: "CONFIRM of another release", want: works, steps: []step{smc, put(d2), get(peer.Accept), put(peer.With(confirm2, peer.AtFCERelease, 0x22)), declined(reasonRelease)}},
	{name: "CONFIRM longer than known", want: works, steps: []step{smc, put(d2), get(peer.Accept), putHello(0, long(confirm2, 900)), declined(reasonInternal)}},
	{name: "DECLINE and urgent data", want: works, steps: []step{smc, put(d1), get(peer.Accept), urgentHello(dec1)}},
	{name: "CONFIRM, urgent", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), urgent(confirm1), endsAtOnce}},
	{name: "silence after ACCEPT", want: expired, steps: []step{smc, put(d1), get(peer.Accept)}},
	{name: "FIN after ACCEPT", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), fin}},
	{name: "RST after ACCEPT", want: never, steps: []step{smc, put(d1), get(peer.Accept), rst}},
	{name: "half a CONFIRM", want: expired, steps: []step{smc, put(d1), get(peer.Accept), put(confirm1[:40])}},
	{name: "half a CONFIRM, FIN", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), putFlags(peer.FIN, confirm1[:40])}},
	{name: "CONFIRM, FIN", want: works, steps: []step{smc, put(d1), get(peer.Accept), putHello(peer.FIN, confirm1), declined(reasonInternal)}},
	{name: "garbage after ACCEPT", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), put(bytes.Repeat([]byte{0xff}, 100))}},
	{name: "PROPOSAL after ACCEPT", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), put(d1)}},
	{name: "ACCEPT after ACCEPT", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), put(peer.AcceptD1(peer.Accept))}},
	{name: "CONFIRM without trailer", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), put(peer.With(confirm1, -4, 0))}},
	{name: "CONFIRM of 1, too long", want: dropped, steps: []step{smc, put(d1), get(peer.Accept), put(long(confirm1, 52))}},
	{name: "CONFIRM of 2, too short", want: dropped, steps: []step{smc, put(d2), get(peer.Accept), put(short(confirm2, 77))}},
	{name: "CONFIRM lacks its extension", want: dropped, steps: []step{smc, put(d2), get(peer.Accept), put(short(confirm2, 78))}},
	{name: "CONFIRM of length 65535", want: dropped, steps: []step{smc, put(d2), get(peer.Accept), put(peer.Resize(confirm2, 65535))}},
}

// endsAtOnce waits for the kernel to end the connection, for less time than it waits for a message.
func endsAtOnce(s *tcpSession) error {
	ctx, cancel := context.WithTimeout(s.ctx, promptTCP)
	defer cancel()
	return s.Ended(ctx)
}

// urgent sends data whose last byte is urgent.
func urgent(data []byte) step {
	return func(s *tcpSession) error {
		seg := s.Segment(peer.ACK|peer.PSH|peer.URG, data...)
		seg.Urgent = uint16(len(data))
		return s.Send(s.ctx, seg)
	}
}

// urgentHello sends data, the hello of the application, and an urgent byte, which the application must not get.
func urgentHello(data []byte) step {
	return func(s *tcpSession) error {
		s.said = true
		seg := s.Segment(peer.ACK|peer.PSH|peer.URG, slices.Concat(data, s.hello, []byte{0})...)
		seg.Urgent = uint16(len(seg.Payload))
		return s.Send(s.ctx, seg)
	}
}

// TestCLCByClients has clients send well-formed and malformed CLC messages to our server, or none.
func TestCLCByClients(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	runServers(t, n, slices.Concat(proposalsByClients, confirmsByClients), 1)
}
