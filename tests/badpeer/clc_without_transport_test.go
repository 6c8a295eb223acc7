// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// bareServers and bareClients are handshakes with a host that has no transport.
var (
	bareServers = []handshakeCase{
		{name: "PROPOSAL", want: works, steps: []step{smc, put(d1), declined(reasonNoDevice)}},
		{name: "PROPOSAL of version 2", want: works, steps: []step{smc, put(d2), declined(reasonNoISM)}},
		{name: "PROPOSAL and DECLINE", want: works, steps: []step{smc, putHello(0, d1), declined(reasonNoDevice)}},
		{name: "DECLINE", want: works, steps: []step{smc, putHello(0, dec1)}},
		{name: "silence", want: expired, steps: []step{smc}},
		{name: "garbage", want: dropped, steps: []step{smc, put(make([]byte, 100))}},
	}
	bareClients = []handshakeCase{
		{name: "takes the DECLINE", want: works, steps: []step{served, declined(reasonNoDevice)}},
		{name: "takes the DECLINE over IPv6", ipv6: true, want: works, steps: []step{served, declined(reasonNoDevice)}},
		{name: "no option", want: works, steps: []step{synAck(peer.MSS)}},
		{name: "no window", want: works, steps: []step{served, window(0), window(1000), declined(reasonNoDevice)}},
		{name: "RST for SYN", want: fails(unix.ECONNREFUSED), steps: []step{listen, refuse}},
	}
)

// TestCLCWithoutTransport has peers connect to, and be connected to by, a host without any transport.
func TestCLCWithoutTransport(t *testing.T) {
	guest.UseNull(t, false)
	n := openPeers(t)
	runServers(t, n, bareServers, 5)
	t.Run("clients", func(t *testing.T) { runHandshakes(t, n, bareClients, 6, (*handshakeCase).asClient) })
}
