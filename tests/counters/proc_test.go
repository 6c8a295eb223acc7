// SPDX-License-Identifier: Apache-2.0

//go:build linux

package counters

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/lab"
)

const addRXE = "rdma link delete rxe0 2>/dev/null || :; rdma link add rxe0 type rxe netdev eth0"

// procEntries checks the effect of what /proc/net/smc can set: how soon a port is used, and how many connections a
// group has. Each begins with a new RDMA device, and so with new link groups.
func procEntries(t *testing.T, lt *lab.Test) {
	t.Helper()
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
	for host, script := range map[string]string{"a": "echo 16 >/proc/net/smc/max_conn_per_lgr", "b": "true"} {
		lt.Must(host, script)
	}
	if made, fell := connections("20"); made != 20 || fell != 0 {
		t.Errorf("port_add_delay=0: %d connections by SMC-R, %d by TCP", made, fell)
	}
	if groups := strings.Count(lt.Must("a", "smcr linkgroup"), "CLNT"); groups != 2 {
		t.Errorf("max_conn_per_lgr=16: 20 connections have %d link groups", groups)
	}
	lt.Must("a", "echo 255 >/proc/net/smc/max_conn_per_lgr; "+addRXE)
	if made, fell := connections("20"); made != 20 || fell != 0 {
		t.Errorf("max_conn_per_lgr=255: %d connections by SMC-R, %d by TCP", made, fell)
	}
	if groups := strings.Count(lt.Must("a", "smcr linkgroup"), "CLNT"); groups != 1 {
		t.Errorf("max_conn_per_lgr=255: 20 connections have %d link groups", groups)
	}
}
