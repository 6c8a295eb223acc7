// SPDX-License-Identifier: Apache-2.0

//go:build linux

package counters

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const addRXE = "rdma link delete rxe0 2>/dev/null || :; rdma link add rxe0 type rxe netdev eth0"

// procEntries checks the effect of settings in /proc/net/smc: when a port is used, and how many connections a group has.
// Each begins with a new RDMA device, and so with new link groups.
func procEntries(t *testing.T, lt *lab.Test) {
	t.Helper()
	// Otherwise it would not try SMC with this host for a while, which has no device in between.
	lt.Must("b", "sysctl -qw net.smc.remember_peers=0")
	defer lab.Kill(t, lt.Serve("b", "", "echo", "0.0.0.0:5002"))
	connections := func(n string) (made, fell int) {
		before := lt.CountersR("a")
		lt.Must("a", "smcflow check --size 100 --conns "+n+" "+lab.Addr4(0, 1)+":5002")
		now := lt.CountersR("a")
		return now.Connections.ClientV2 - before.Connections.ClientV2, now.Fallback.Client.Total - before.Fallback.Client.Total
	}

	lt.Must("a", "echo 1000 >/proc/net/smc/port_add_delay; "+addRXE)
	if made, fell := connections("1"); made != 0 || fell != 1 {
		t.Errorf("port_add_delay=1000: %d connections by SMC-R, %d by TCP", made, fell)
	}
	lt.Must("a", "echo 0 >/proc/net/smc/port_add_delay; "+addRXE)
	if made, fell := connections("1"); made != 1 || fell != 0 {
		t.Errorf("port_add_delay=0: %d connections by SMC-R, %d by TCP", made, fell)
	}
	for most, want := range map[string]int{"16": 2, "255": 1} {
		lt.Must("a", "echo "+most+" >/proc/net/smc/max_conn_per_lgr; "+addRXE)
		if groups := groupsOf20(t, lt); groups != want {
			t.Errorf("max_conn_per_lgr=%s: 20 connections have %d link groups, want %d", most, groups, want)
		}
	}
}

// groupsOf20 counts the link groups that 20 connections at once have.
func groupsOf20(t *testing.T, lt *lab.Test) int {
	t.Helper()
	keep, err := lt.Host("a").Start(lab.Cmd{Argv: []string{"smcflow", "keep", "--conns", "20", "--pause", "100ms", lab.Addr4(0, 1) + ":5002"}})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.Kill(t, keep)
	if err := lt.Host("a").WaitFor(t.Context(), "test $(smcss -R | grep -c ':5002 ') = 20"); err != nil {
		t.Fatal(err)
	}
	return strings.Count(lt.Must("a", "smcr linkgroup"), "CLNT")
}
