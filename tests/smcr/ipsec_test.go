// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/xfrm"
)

// protectedConns is how many connections a policy applies to.
const protectedConns = 2

// countsPackets matches the line of an SA that has been used. Limits in packets are "(INF)(packets)".
var countsPackets = regexp.MustCompile(`\b[1-9]\d*\(packets\)`)

// ipsec protects what each host with our module sends: a as the client, b as the server. The other host has the policy and the SA that
// match.
func ipsec(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	for i, host := range []string{"a", "b"} {
		if modules[i] != lab.ModuleOurs {
			continue // the stock module knows nothing of IPsec
		}
		t.Run("sent by "+host, func(t *testing.T) {
			t.Run("before", func(t *testing.T) { protectedBefore(t, lt, host, 5081+i) })
			t.Run("live", func(t *testing.T) { protectedLive(t, lt, host, 5083+i) })
		})
	}
}

// protect makes IPsec encrypt what a host sends on connections to a port of b. What the peer sends stays as it is. The end of the test
// takes all policies away.
func protect(t *testing.T, lt *lab.Test, host string, port int) {
	t.Helper()
	client, server := lab.Addr4(0, 0), lab.Addr4(0, 1)
	peer, s := "b", xfrm.Sender{From: client, To: server, Selector: fmt.Sprint("dport ", port)}
	if host == "b" {
		peer, s = "a", xfrm.Sender{From: server, To: client, Selector: fmt.Sprint("sport ", port)}
	}
	t.Cleanup(func() {
		for _, h := range []string{"a", "b"} {
			lt.Must(h, xfrm.Unprotect(""))
		}
	})
	send, receive := s.Protect("")
	lt.Must(host, send)
	lt.Must(peer, receive)
}

// protectedBefore has a policy before there are connections: these are TCP, and their packets encrypted.
func protectedBefore(t *testing.T, lt *lab.Test, host string, port int) {
	address, echo := serve(t, lt, "echo", port)
	defer lab.Kill(t, echo)
	protect(t, lt, host, port)
	before := counters(lt)
	kept := lt.StartIn("a", "", "smcflow", "keep", "--conns", fmt.Sprint(protectedConns), address)
	// The host whose packets the policy applies to shows its reason, IPSEC.
	shown := fmt.Sprintf("test $(smcss --state active --port %d | grep -c 'TCP 0x03020000') = %d", port, protectedConns)
	if err := lt.Host(host).WaitFor(t.Context(), shown); err != nil {
		t.Errorf("%v: %s", err, lt.Must(host, "smcss -a"))
	}
	lab.Stop(t, kept) // data has come back until now
	for i, h := range []string{"a", "b"} {
		if now := lt.CountersR(h); now.Connections != before[i].Connections {
			t.Errorf("host %s: connections went from %+v to %+v", h, before[i].Connections, now.Connections)
		}
		if out := lt.Must(h, "ip -s xfrm state"); !countsPackets.MatchString(out) {
			t.Errorf("host %s: the SA was not used: %s", h, out)
		}
	}
}

// protectedLive adds a policy that applies to some of the open connections of a link group: those end, and no other one.
func protectedLive(t *testing.T, lt *lab.Test, host string, port int) {
	address, echo := serve(t, lt, "echo", port)
	defer lab.Kill(t, echo)
	elsewhere, other := serve(t, lt, "echo", 5085)
	defer lab.Kill(t, other)
	before := counters(lt)
	kept := lt.StartIn("a", "", "smcflow", "keep", "--conns", fmt.Sprint(protectedConns), address)
	bystander := lt.StartIn("a", "", "smcflow", "keep", elsewhere)
	await(t, lt, "a", address, protectedConns)
	await(t, lt, "a", elsewhere, 1)
	protect(t, lt, host, port)
	fail(t, []*lab.Process{kept})
	for _, h := range []string{"a", "b"} {
		await(t, lt, h, address, 0)
	}
	lab.Stop(t, bystander)
	onlySMCR(t, lt, before, protectedConns+1)
}
