// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// bareServers and bareClients are connections with a host that has no transport: it neither sends nor answers the option.
var (
	bareServers = []handshakeCase{
		{name: "option", want: works, steps: []step{syn(peer.MSS, peer.Option), refused}},
		{name: "option over IPv6", ipv6: true, want: works, steps: []step{syn(peer.MSS, peer.Option), refused}},
		{name: "no option", want: works, steps: []step{plain}},
	}
	bareClients = []handshakeCase{
		{name: "no option", want: works, steps: []step{answerPlain}},
		{name: "no option over IPv6", ipv6: true, want: works, steps: []step{answerPlain}},
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
