// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"fmt"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// linksWithoutMemory loses and adds links, and makes connections, while one of twenty allocations of our module fails on both hosts:
// links and connections may fail, but nothing hangs or is lost, and with memory all is well again. The debug kernel injects that.
func linksWithoutMemory(t *testing.T, lt *lab.Test) {
	address, echo := serve(t, lt, "echo", 5061)
	defer lab.Kill(t, echo)
	// The code of the module is what allocates, directly or by functions that it calls.
	both(t, lt, `cd /sys/kernel/debug/failslab
echo 0 >ignore-gfp-wait; echo 0 >verbose
set -- $(grep '^smc ' /proc/modules)
printf '%#x' $(($6)) >require-start; printf '%#x' $(($6 + $2)) >require-end
echo -1 >times; echo 5 >probability`)
	for i := range 6 {
		host, dev := []string{"a", "b"}[i%2], fmt.Sprintf("eth%d", i/2%2)
		check := lt.StartIn("a", "", "smcflow", "check", "--conns", "3", "--rounds", "3", "--size", "20000", address)
		lt.Must(host, "ip link set "+dev+" down")
		lt.Must(host, "ip link set "+dev+" up")
		if err := lt.Host("a").WaitFor(t.Context(), "test $(smcr device --json | grep -c '\"ACTIVE\"') = 2"); err != nil {
			t.Fatal(err)
		}
		lab.Kill(t, check)
	}
	both(t, lt, "cd /sys/kernel/debug/failslab; echo 0 >probability; echo 0 >require-start; echo 0xffffffffffffffff >require-end")
	endGroups(t, lt)
	kept := keepIn(t, lt, "", address, 2)
	defer lab.Kill(t, kept)
	awaitLinks(t, lt, true)
}
