// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestLinks has hosts with two adapters in one physical network: link groups get a second link, and between two hosts with our
// module their connections go on when a link is lost.
func TestLinks(t *testing.T) {
	lab.Need(t)
	ours := side{lab.Newest(), lab.ModuleOurs}
	for _, p := range [][2]side{{ours, ours}, {ours, stock}, {stock, ours}} {
		t.Run(fmt.Sprintf("%s to %s", p[0], p[1]), func(t *testing.T) {
			lt := startWith(t, lab.Options{Wires: 2}, p[0], p[1])
			oneNetwork(t, lt)
			t.Run("added", func(t *testing.T) { linkAdded(t, lt) })
			if p[0].module == p[1].module {
				t.Run("lost and found", func(t *testing.T) { linksChange(t, lt) })
			}
			for i, host := range []string{"a", "b"} {
				if p[i].module == lab.ModuleOurs {
					unloads(t, lt, host)
				}
			}
		})
	}
}

// oneNetwork puts both wires into one physical network. The stock module takes a second adapter only if that has an address in
// the subnet of the connection.
func oneNetwork(t *testing.T, lt *lab.Test) {
	t.Helper()
	each(t, lt, "sysctl -qw net.smc.smcr_max_links_per_lgr=2; smc_pnet del LAB1; smc_pnet add "+lab.PNETID+" eth eth1; smc_pnet add "+lab.PNETID+` ib rxe1 1
ip addr add 10.0.0.10%[1]d/24 dev eth1`)
}

// linkAdded wants both hosts to list two links of a symmetric group, over which connections spread.
func linkAdded(t *testing.T, lt *lab.Test) {
	address, sink := serve(t, lt, "sink", 5050)
	defer lab.Kill(t, sink)
	kept := keepIn(t, lt, "", address, 1)
	defer lab.Kill(t, kept)
	awaitLinks(t, lt, 2)
	address, other := serve(t, lt, "sink", 5051)
	defer lab.Kill(t, other)
	more := keepIn(t, lt, "", address, 4)
	defer lab.Kill(t, more)
	for _, host := range []string{"a", "b"} {
		var answer struct{ Linkgroups []group }
		runJSON(t, lt, host, "smcr linkgroup link-show --json", &answer)
		if len(answer.Linkgroups) != 1 || answer.Linkgroups[0].Type != "SYM" || len(answer.Linkgroups[0].Links) != 2 {
			t.Fatalf("host %s: %+v", host, answer.Linkgroups)
		}
		for _, l := range answer.Linkgroups[0].Links {
			if l.State != "LINK_ACTIVE" || l.Connections < 2 {
				t.Errorf("host %s: %+v", host, answer.Linkgroups[0].Links)
			}
		}
	}
}

// awaitLinks waits until both hosts list as many active links.
func awaitLinks(t *testing.T, lt *lab.Test, n int) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		if err := lt.Host(host).WaitFor(t.Context(), fmt.Sprintf("test $(smcr linkgroup link-show | grep -c LINK_ACTIVE) = %d", n)); err != nil {
			t.Fatalf("%v\n%s\n%s", err, lt.Must(host, "smcr linkgroup link-show"), lt.Must(host, "dmesg | tail -5"))
		}
	}
}

// linksChange takes ports down and up again while connections stream over both links: connections go on by the other link,
// every byte arrives, and the group gets a second link again. Ports go on both hosts: those of the first link, and of the other.
func linksChange(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5052)
	defer lab.Kill(t, echo)
	check := lt.StartIn("a", "", "smcflow", "check", "--conns", "10", "--size", "30000000", address)
	defer lab.Kill(t, check)
	if err := lt.Host("a").WaitFor(t.Context(), "test $(smcss --state active --port 5052 | grep -c SMCR) = 10"); err != nil {
		t.Fatal(err)
	}
	for _, netdev := range []string{"eth1", "eth0"} {
		for _, host := range []string{"a", "b"} {
			awaitLinks(t, lt, 2)
			lt.Must(host, "ip link set "+netdev+" down")
			awaitLinks(t, lt, 1)
			lt.Must(host, "ip link set "+netdev+" up")
		}
	}
	finish(t, check)
	awaitLinks(t, lt, 2)
}
