// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// set changes settings on both hosts until the end of the test.
func set(t *testing.T, lt *lab.Test, settings ...string) {
	t.Helper()
	for _, host := range []string{"a", "b"} {
		setOn(t, lt, host, settings...)
	}
}

// setOn changes settings on one host until the end of the test.
func setOn(t *testing.T, lt *lab.Test, host string, settings ...string) {
	t.Helper()
	for _, s := range settings {
		name, _, _ := strings.Cut(s, "=")
		old := lt.Must(host, "sysctl -n net.smc."+name)
		lt.Must(host, "sysctl -qw net.smc."+s)
		t.Cleanup(func() { lt.Must(host, fmt.Sprintf("sysctl -qw net.smc.%s=%s", name, old)) })
	}
}

// unlikeRings has senders whose rings are a fraction of the peer's RMB: the peer sends consumer updates as the size of the
// ring demands.
func unlikeRings(t *testing.T, lt *lab.Test) {
	set(t, lt, "wmem=16384", "rmem=1048576")
	address, echo := serve(t, lt, "echo", 5010)
	defer lab.Kill(t, echo)
	before := counters(lt)
	lt.Must("a", "smcflow check --conns 3 --size 3000000 "+address)
	lt.Must("a", "smcflow check --conns 3 --size 300000 --chunk 5000 "+address)
	onlySMCR(t, lt, before, 6)
}

// reload reloads our modules, which ends all groups.
func reload(t *testing.T, lt *lab.Test, modules [2]lab.Module, eid bool) {
	t.Helper()
	for i, host := range []string{"a", "b"} {
		if modules[i] != lab.ModuleOurs {
			continue
		}
		lt.Must(host, "rmmod smc_diag smc && modprobe smc && modprobe smc_diag")
		lt.Must(host, "smc_pnet add LAB0 eth eth0 && smc_pnet add LAB0 ib rxe0 1")
		if eid {
			lt.Must(host, "smcr ueid add "+lab.UEID)
		}
		awaitAdapter(t, lt, host)
	}
}

// awaitAdapter waits until a host's adapter can be used, which takes a moment with some limits.
func awaitAdapter(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	if err := lt.Host(host).WaitFor(t.Context(), "smcr device --json | grep -q '\"ACTIVE\"'"); err != nil {
		t.Fatal(err)
	}
}

// scatteredBuffers has rings and RMBs of single pages, which are registered as lists.
func scatteredBuffers(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	reload(t, lt, modules, true)
	set(t, lt, "smcr_buf_type=1")
	address, echo := serve(t, lt, "echo", 5011)
	defer lab.Kill(t, echo)
	before := counters(lt)
	lt.Must("a", "smcflow check --conns 10 --size 1000000 "+address)
	onlySMCR(t, lt, before, 10)
}

// roceBlocked has a network that passes TCP, but not RoCE: connections fall back on both sides.
func roceBlocked(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	reload(t, lt, modules, true)
	for _, host := range []string{"a", "b"} {
		lt.Must(host, "tc qdisc add dev eth0 clsact && "+
			"tc filter add dev eth0 ingress protocol ip u32 match ip protocol 17 0xff match ip dport 4791 0xffff action drop")
		t.Cleanup(func() { lt.Must(host, "tc qdisc del dev eth0 clsact") })
	}
	address, echo := serve(t, lt, "echo", 5012)
	defer lab.Kill(t, echo)
	before := counters(lt)
	conns := 3
	if modules[1] == lab.ModuleStock {
		// It has one handshake at a time, and the third in a row comes too late for its client.
		conns = 1
	}
	lt.Must("a", fmt.Sprintf("smcflow check --conns %d --size 100000 %s", conns, address))
	for i, host := range []string{"a", "b"} {
		now := lt.CountersR(host)
		if fell := now.FellBack() - before[i].FellBack(); fell != conns {
			t.Errorf("host %s: %d of %d connections fell back: %+v", host, fell, conns, now.Fallback)
		}
	}
}

// version1 has two hosts without a common EID, which may use RoCEv2 with version 1.
func version1(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	reload(t, lt, modules, false)
	set(t, lt, "smcr_v1_rocev2=1")
	for _, address := range []string{lab.Addr4(0, 1) + ":5013", "[" + lab.Addr6(0, 1) + "]:5014"} {
		defer lab.Kill(t, lt.Serve("b", "", "echo", address))
		before := counters(lt)
		lt.Must("a", "smcflow check --conns 10 --size 1000000 "+address)
		onlyVersion1(t, lt, before, 10)
	}
}

// onlyVersion1 checks that all connections are SMC-R of version 1, from a to b.
func onlyVersion1(t *testing.T, lt *lab.Test, before [2]lab.Counters, n int) {
	t.Helper()
	now := counters(lt)
	client, server := now[0].Connections.ClientV1-before[0].Connections.ClientV1, now[1].Connections.ServerV1-before[1].Connections.ServerV1
	if client != n || server != n {
		t.Errorf("%d and %d of %d connections are SMC-R version 1: %+v", client, server, n, now)
	}
}
