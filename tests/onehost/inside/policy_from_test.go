// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestRulesFrom has a listener whose clients come from two networks: about each connection the rule of its network decides, and counts it.
// The rules are those of the moment when the listener began to listen.
func TestRulesFrom(t *testing.T) {
	needRules(t)
	for _, protocol := range []int{0, ipprotoSMC} {
		setRules(t, "tcp from 127.0.0.2/32", "smc port 6379")
		l, c, s := open(t, service, protocol)
		if kindOf(t, c) != "SMC" || kindOf(t, s) != "SMC" {
			t.Errorf("protocol %d: from 127.0.0.1: %q, %q", protocol, kindOf(t, c), kindOf(t, s))
		}
		_, before, err := fallbacks(netlinksmc.ReasonPolicy)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			c, s := connectFrom(t, l, "127.0.0.2:0", protocol)
			if kindOf(t, c) != "TCP" || kindOf(t, s) != "TCP" {
				t.Errorf("protocol %d: connection %d from 127.0.0.2: %q, %q", protocol, i, kindOf(t, c), kindOf(t, s))
			}
			unix.Close(c)
			unix.Close(s)
		}
		if _, now, err := fallbacks(netlinksmc.ReasonPolicy); err != nil || now != before+2 {
			t.Errorf("protocol %d: %d fallbacks became %d, %v", protocol, before, now, err)
		}
		// A listener and three clients: the rule for the port decides about them all, but not about the two connections.
		want := []policy.Counters{{Decisions: 2, TCP: 2}, {Decisions: 4, SMC: 2, TCP: 2}}
		if got := counters(t); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("protocol %d: %+v", protocol, got)
		}
		for _, fd := range []int{l, c, s} {
			unix.Close(fd)
		}
	}
}

// connectFrom connects another client to a listener of the service, from an address.
func connectFrom(t *testing.T, listener int, from string, protocol int) (client, server int) {
	t.Helper()
	_, source := guest.Sockaddr(netip.MustParseAddrPort(from))
	_, target := guest.Sockaddr(service)
	client, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Bind(client, source), unix.Connect(client, target)); err != nil {
		t.Fatal(err)
	}
	server, err = guest.Accept(listener)
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}
