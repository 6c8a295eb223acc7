// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// byIPv6 has connections over IPv6 from each host to the other. Between two of our hosts they are SMC-R version 2, whose GIDs
// are the IPv6 addresses; with the stock module, which does not support that, they fall back to TCP.
func byIPv6(t *testing.T, lt *lab.Test, onlyOurs bool) {
	for i, from := range []string{"a", "b"} {
		to := []string{"b", "a"}[i]
		address := fmt.Sprintf("[%s]:%d", lab.Addr6(0, 1-i), 5051+i)
		defer lab.Kill(t, lt.Serve(to, "", "echo", address))
		client, server := lt.CountersR(from).Connections.ClientV2, lt.CountersR(to).Connections.ServerV2
		lt.Must(from, "smcflow check --conns 5 --size 1000000 "+address)
		client, server = lt.CountersR(from).Connections.ClientV2-client, lt.CountersR(to).Connections.ServerV2-server
		want := 0
		if onlyOurs {
			want = 5
		}
		if client != want || server != want {
			t.Errorf("from %s to %s: %d and %d of 5 connections are SMC-R version 2, want %d", from, address, client, server, want)
		}
	}
	if out := lt.Must("a", "smcr -dd link"); onlyOurs != strings.Contains(out, "fd00") {
		t.Errorf("links: %s", out)
	}
}

// TestIPv6 is byIPv6 between two of our hosts.
func TestIPv6(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string) {
		ours := side{kernel, lab.ModuleOurs}
		byIPv6(t, start(t, ours, ours), true)
	})
}

// TestRouted has two hosts on different networks, and a router between them: SMC-R version 2 works over IPv4 and IPv6, and the
// commands show the gateway.
func TestRouted(t *testing.T) {
	if !lab.Full() {
		t.Skip("boots three hosts: SMCKIT_FULL=1")
	}
	eachKernel(t, routed)
}

func routed(t *testing.T, kernel string) {
	dir, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{Kernel: kernel, Hosts: 3, Wires: 2, Programs: []string{dir}})
	if err := lt.SetUpSMC(t.Context(), lab.ModuleOurs, lab.ModuleNone, lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	lt.Must("b", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
	for _, host := range []struct {
		name, away string
		wire, net  int // its own, and the other's
	}{{"a", "eth1", 0, 1}, {"c", "eth0", 1, 0}} {
		lt.Must(host.name, fmt.Sprintf("ip link set %s down; ip route add 10.0.%d.0/24 via %s; ip route add fd00:0:0:%x::/64 via %s",
			host.away, host.net, lab.Addr4(host.wire, 1), host.net, lab.Addr6(host.wire, 1)))
	}
	for i, address := range []string{lab.Addr4(1, 2) + ":5061", "[" + lab.Addr6(1, 2) + "]:5062"} {
		defer lab.Kill(t, lt.Serve("c", "", "echo", address))
		lt.Must("a", "smcflow check --conns 10 --rounds 2 --size 1000000 "+address)
		for j, n := range []int{lt.CountersR("a").Connections.ClientV2, lt.CountersR("c").Connections.ServerV2} {
			if n != 20*(i+1) {
				t.Errorf("%s: %d connections are SMC-R version 2 on %s, want %d", address, n, []string{"a", "c"}[j], 20*(i+1))
			}
		}
	}
	for _, host := range []string{"a", "c"} {
		if out := lt.Must(host, "smcr linkgroup --json"); strings.Count(out, `"direct": false`) != 2 {
			t.Errorf("host %s does not have two link groups over a gateway: %s", host, out)
		}
	}
}
