// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

var (
	accept1  = peer.AcceptD1(peer.Accept)
	accept2  = peer.AcceptD2(peer.Accept)
	offered  = steps(served, get(peer.Proposal))
	broken   = fails(unix.EPROTO)
	cut      = fails(unix.ECONNRESET)
	timesOut = handshakeOutcome{expires: true, errno: []unix.Errno{unix.ETIMEDOUT}}
)

// clcByServers are answers of servers to our PROPOSAL.
var clcByServers = []handshakeCase{
	{name: "DECLINE", want: works, steps: []step{offered, put(dec1)}},
	{name: "DECLINE and data", want: works, steps: []step{offered, putHello(0, dec1)}},
	{name: "DECLINE and data over IPv6", ipv6: true, want: works, steps: []step{offered, putHello(0, dec1)}},
	{name: "DECLINE of version 2 and data", want: works, steps: []step{offered, putHello(0, dec2)}},
	{name: "DECLINE of version 15 and data", want: works, steps: []step{offered, putHello(0, peer.With(dec2, 7, 0xf0))}},
	{name: "DECLINE, data and FIN", want: works, steps: []step{offered, putHello(peer.FIN, dec1)}},
	{name: "DECLINE in single bytes", want: works, steps: []step{offered, each(1, dec1)}},
	{name: "DECLINE before the PROPOSAL", want: works, steps: []step{served, putHello(0, dec1), get(peer.Proposal)}},
	{name: "version 1", want: works, steps: []step{offered, put(accept1), get(peer.Confirm), putHello(0, dec1)}},
	{name: "version 2", want: works, steps: []step{offered, put(accept2), get(peer.Confirm), putHello(0, dec2)}},
	{name: "version 1, in single bytes", want: works, steps: []step{offered, each(1, accept1), get(peer.Confirm), putHello(0, dec1)}},
	{name: "version 2 over IPv6", ipv6: true, want: works, steps: []step{offered, put(accept2), get(peer.Confirm), putHello(0, dec2)}},
	{name: "ACCEPT, DECLINE and data", want: works, steps: []step{offered, putHello(0, accept1, dec1), get(peer.Confirm)}},
	{name: "no DECLINE crosses", want: works, steps: []step{offered, put(accept1), get(peer.Confirm), declined(reasonInternal)}},
	{name: "no DECLINE crosses in version 2", want: works, steps: []step{offered, put(accept2), get(peer.Confirm), declined(reasonInternal)}},
	{name: "DECLINE, the end of which is late", want: works, steps: []step{offered, put(accept1), get(peer.Confirm), put(dec1[:20]), quiet, putHello(0, dec1[20:])}},
	{name: "half a DECLINE", want: timesOut, steps: []step{offered, put(accept1), get(peer.Confirm), put(dec1[:20])}},
	{name: "ACCEPT longer than known", want: works, steps: []step{offered, put(long(accept2, 400)), get(peer.Confirm), putHello(0, dec2)}},
	{name: "ACCEPT of SMC-R", want: works, steps: []step{offered, put(peer.AcceptR1(peer.Accept)), declined(reasonMode)}},
	{name: "ACCEPT of SMC-Rv2", want: works, steps: []step{offered, put(peer.AcceptR2(peer.Accept)), declined(reasonMode)}},
	{name: "ACCEPT of version 3", want: works, steps: []step{offered, put(peer.With(accept2, 7, 0x39)), declined(reasonVersion)}},
	{name: "ACCEPT of a newer release", want: works, steps: []step{offered, put(peer.With(accept2, peer.AtFCERelease, 0x22)), declined(reasonRelease)}},
	{name: "no window for the CONFIRM for a while", want: works, steps: []step{served, window(0), put(accept1), window(4000), get(peer.Proposal), get(peer.Confirm), putHello(0, dec1)}},
	{name: "DECLINE and urgent data", want: works, steps: []step{offered, urgentHello(dec1)}},
	{name: "silence", want: timesOut, steps: []step{served}},
	{name: "silence after the PROPOSAL", want: timesOut, steps: []step{offered}},
	{name: "silence over IPv6", ipv6: true, want: timesOut, steps: []step{offered}},
	{name: "no window for the PROPOSAL", want: timesOut, steps: []step{served, window(0)}},
	{name: "one byte a second", want: timesOut, steps: []step{offered, slowly(accept2)}},
	{name: "half a header", want: timesOut, steps: []step{offered, put(accept1[:7])}},
	{name: "half an ACCEPT", want: timesOut, steps: []step{offered, put(accept1[:40])}},
	{name: "length above content", want: timesOut, steps: []step{offered, put(peer.Resize(accept2, 140))}},
	{name: "FIN", want: cut, steps: []step{served, fin}},
	{name: "FIN after the PROPOSAL", want: cut, steps: []step{offered, fin}},
	{name: "RST", want: cut, steps: []step{served, rst}},
	{name: "RST after the PROPOSAL", want: cut, steps: []step{offered, rst}},
	{name: "half an ACCEPT, FIN", want: cut, steps: []step{offered, putFlags(peer.FIN, accept1[:40])}},
	{name: "half an ACCEPT, RST", want: cut, steps: []step{offered, put(accept1[:40]), rst}},
	{name: "half a DECLINE, FIN", want: cut, steps: []step{offered, putFlags(peer.FIN, dec1[:27])}},
	{name: "RST after CONFIRM", want: cut, steps: []step{offered, put(accept1), get(peer.Confirm), rst}},
	{name: "FIN after CONFIRM", want: cut, steps: []step{offered, put(accept1), get(peer.Confirm), fin}},
	{name: "data after CONFIRM", want: broken, steps: []step{offered, put(accept1), get(peer.Confirm), put([]byte("is this SMC?"))}},
	{name: "ACCEPT, urgent", want: broken, steps: []step{offered, urgent(accept1)}},
	{name: "urgent byte before the ACCEPT", want: broken, steps: []step{offered, urgent([]byte{0})}},
	{name: "garbage", want: broken, steps: []step{offered, put(bytes.Repeat([]byte("garbage "), 20))}},
	{name: "wrong eyecatcher", want: broken, steps: []step{offered, put(peer.With(accept1, 0, 0))}},
	{name: "wrong trailing eyecatcher", want: broken, steps: []step{offered, put(peer.With(accept1, -1, 0))}},
	{name: "type 0", want: broken, steps: []step{offered, put(peer.With(accept1, 4, 0))}},
	{name: "type 5", want: broken, steps: []step{offered, put(peer.With(accept1, 4, 5))}},
	{name: "PROPOSAL", want: broken, steps: []step{offered, put(d1)}},
	{name: "CONFIRM", want: broken, steps: []step{offered, put(confirm1)}},
	{name: "ACCEPT twice", want: broken, steps: []step{offered, put(accept1, accept1)}},
	{name: "version 0", want: broken, steps: []step{offered, put(peer.With(accept1, 7, 0x09))}},
	{name: "length 0", want: broken, steps: []step{offered, put(peer.Resize(accept1, 0))}},
	{name: "length 8", want: broken, steps: []step{offered, put(peer.Resize(accept1, 8))}},
	{name: "length 12", want: broken, steps: []step{offered, put(short(accept1, 12))}},
	{name: "version 1, too short", want: broken, steps: []step{offered, put(short(accept1, 44))}},
	{name: "version 1, too long", want: broken, steps: []step{offered, put(long(accept1, 52))}},
	{name: "version 2, too short", want: broken, steps: []step{offered, put(short(accept2, 77))}},
	{name: "version 2 lacks its extension", want: broken, steps: []step{offered, put(short(accept2, 78))}},
	{name: "DECLINE of version 1, too long", want: broken, steps: []step{offered, put(peer.With(dec2, 7, 0x10))}},
	{name: "DECLINE of version 2, too short", want: broken, steps: []step{offered, put(peer.With(dec1, 7, 0x20))}},
}

// clientHandshakes returns how often, as a client, a handshake of this host has failed, and how often a connection has fallen back.
func clientHandshakes(t *testing.T) (failed, fellBack uint64) {
	t.Helper()
	c, err := netlinksmc.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stats, err := c.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fallback, err := c.FallbackStats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return stats.ClientHandshakeErrors, fallback.ClientTotal
}

// TestCLCByServers has servers send well-formed and malformed CLC messages to our client, or none. As with the stock module, a connection
// that continues over TCP counts as one that fell back, and one that does not as a failed handshake.
func TestCLCByServers(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	failed, fellBack := clientHandshakes(t)
	t.Run("all", func(t *testing.T) { runHandshakes(t, n, clcByServers, 2, (*handshakeCase).asClient) })
	nowFailed, nowFellBack := clientHandshakes(t)
	failed, fellBack = nowFailed-failed, nowFellBack-fellBack
	var fail, fall uint64
	for _, b := range clcByServers {
		if b.want.works {
			fall++
		} else {
			fail++
		}
	}
	// The reset of one server may come before the handshake begins.
	if fellBack != fall || failed > fail || failed < fail-1 {
		t.Errorf("%d connections fell back, want %d; %d handshakes failed, want %d", fellBack, fall, failed, fail)
	}
}
