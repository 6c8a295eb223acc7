// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/tool/smcpolicy"
)

// memoryCeiling sets a ceiling on each host with our module in turn, and makes more connections than fit below it: all work, those that
// do not fit as TCP. The other host, which may have the stock module, learns that memory is short.
func memoryCeiling(t *testing.T, lt *lab.Test, modules [2]lab.Module) {
	for i, host := range []string{"a", "b"} {
		if modules[i] == lab.ModuleOurs {
			t.Run(host, func(t *testing.T) { memoryCeilingOn(t, lt, host, []string{"b", "a"}[i]) })
		}
	}
}

func memoryCeilingOn(t *testing.T, lt *lab.Test, host, other string) {
	const limit, conns = 1 << 20, 40
	address, echo := serve(t, lt, "echo", 5071)
	defer lab.Kill(t, echo)
	// Connections that other tests have left wait for their peers.
	lt.Must(host, deleteGroups)
	awaitNoMemory(t, lt, host)
	lt.Must(host, "smc_policy memory 1M")
	kept := lt.StartIn("a", "", "smcflow", "keep", "--conns", fmt.Sprint(conns), address)
	all := fmt.Sprintf("test $(smcss --state active --port 5071 | grep -c -e SMCR -e 0x) = %d", conns)
	// PEERDECL, and the peer's reason, MEMORY.
	informed := "smcss --state active --port 5071 | grep -q 0x05000000/0x01010000"
	for _, wait := range [][2]string{{"a", all}, {other, informed}} {
		if err := lt.Host(wait[0]).WaitFor(t.Context(), wait[1]); err != nil {
			t.Fatal(err)
		}
	}
	var m smcpolicy.Memory
	lt.Document(host, "smc_policy memory --json", &m)
	if n := m.Namespace; n.Reserved > limit || n.Reserved < limit/2 || n.RMBs == 0 || n.SendRings == 0 || n.Refused == 0 ||
		m.Host == nil || m.Host.Queues == nil || *m.Host.Queues == 0 {
		t.Errorf("memory under a ceiling of %d: %+v", limit, m)
	}
	smcr, err := strconv.Atoi(strings.TrimSpace(lt.Must("a", "smcss --state active --port 5071 | grep -c SMCR")))
	if err != nil || smcr < 3 || smcr > conns/2 {
		t.Errorf("%d of %d connections are SMC-R, %v", smcr, conns, err)
	}
	lab.Kill(t, kept)
	lt.Must(host, "smc_policy memory none")
	awaitNoMemory(t, lt, host)
	works(t, lt, address)
}

// awaitNoMemory waits until connections of a host have no memory any more.
func awaitNoMemory(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	gone := `smc_policy memory --json | tr -d '[:space:]' | grep -q '"namespace":{"ceiling_bytes":0,"reserved_bytes":0,'`
	if err := lt.Host(host).WaitFor(t.Context(), gone); err != nil {
		t.Fatalf("memory is left: %v: %s", err, lt.Must(host, "smc_policy memory"))
	}
}
