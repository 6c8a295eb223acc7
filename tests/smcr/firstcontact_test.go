// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// firstContacts is how many first contacts TestFirstContact makes on the newest kernel.
const firstContacts = 200

// TestFirstContact has a client with the stock module and a server with ours form a link group, again and again. Each first
// contact must end as SMC-R on both sides.
//
// Once, the server gave up a first contact that its client took for complete. A defect with this effect was found later, and
// fixed: a client's application writes and closes its direction at once, as smcflow does here, TCP delivers the FIN before RDMA
// delivers the answer to CONFIRM LINK, and the server took the FIN for a broken handshake. "FIN before the answer" in
// tests/badpeer/forming_test.go has this order each time. Whether the one failure was this defect is unknown, because the test
// did not record how the handshake ended. A guest that stalls for two seconds would explain it, too: the server does not wait
// longer for the answer.
//
// This test does not show the cause either. If it passes, fewer than 1.5 of 100 first contacts fail, with a confidence of 95 %.
// The first failure ends the test, which keeps the tracepoints of both hosts and all packets.
func TestFirstContact(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("takes a quarter of an hour: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	eachKernel(t, repeatFirstContact)
}

func repeatFirstContact(t *testing.T, kernel string) {
	client, server := stock, side{kernel, lab.ModuleOurs}
	lt := start(t, client, server)
	modules := [2]lab.Module{client.module, server.module}
	packets := filepath.Join(artifacts(t), "packets.pcap")
	if err := lt.Wires[0].Capture(packets); err != nil {
		t.Fatal(err)
	}
	for i := range repetitions(kernel, firstContacts) {
		reload(t, lt, modules, true)
		awaitNoGroups(t, lt)
		traceFromNow(lt)
		if !meetFirst(t, lt) {
			t.Fatalf("first contact %d failed; its packets are the last in %s", i+1, packets)
		}
	}
	if err := os.Remove(packets); err != nil {
		t.Error(err)
	}
}

// traceFromNow has both hosts record what their modules and soft-RoCE do from now on.
func traceFromNow(lt *lab.Test) {
	for _, host := range []string{"a", "b"} {
		lt.Must(host, `cd /sys/kernel/tracing
for e in smc smckit; do ! test -e events/$e || echo 1 >events/$e/enable; done
echo >trace`)
	}
}

// meetFirst makes one connection, and reports whether it was SMC-R on both sides, and carried its data.
func meetFirst(t *testing.T, lt *lab.Test) bool {
	t.Helper()
	address, echo := serve(t, lt, "echo", 5030)
	defer lab.Kill(t, echo)
	before := counters(lt)
	r := lt.Run("a", "smcflow", "check", "--size", "1000", address)
	if r.Code != 0 {
		t.Errorf("exit status %d: %s", r.Code, r.Stderr)
	}
	onlySMCR(t, lt, before, 1)
	if t.Failed() {
		for _, host := range []string{"a", "b"} {
			t.Logf("host %s: %s", host, lt.Must(host, "smcss -a; smcr -d linkgroup; smcr -dd linkgroup link-show; rdma resource show qp"))
		}
	}
	return !t.Failed()
}

// artifacts is a directory that outlives the test.
func artifacts(t *testing.T) string {
	t.Helper()
	dir := cmp.Or(os.Getenv("SMCKIT_ARTIFACTS"), filepath.Join(os.TempDir(), "smckit-artifacts"))
	dir = filepath.Join(dir, fmt.Sprintf("%s-%d", t.Name(), os.Getpid()))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}
