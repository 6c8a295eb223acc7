// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// NullGuest is made in guests whose SMC-D is that of smc_null.ko, and that have no SMC-R.
const NullGuest Marker = "/run/smckit-null"

// nullCaches are the slab caches of our module.
var nullCaches = []string{"smc_sock", "smc_rendezvous"}

// tcpSockets returns the number of TCP sockets, and how many of them are orphans.
func tcpSockets() (inuse, orphans int, err error) {
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(b)) {
		if _, err := fmt.Sscanf(line, "TCP: inuse %d orphan %d", &inuse, &orphans); err == nil {
			return inuse, orphans, nil
		}
	}
	return 0, 0, fmt.Errorf("no TCP in %s", b)
}

// nullRemains describes what is left: sockets of ours, other TCP sockets than inuse, or more orphans than most.
func nullRemains(inuse, most int) string {
	if left := Left(nullCaches...); left != "" {
		return left
	}
	now, orphans, err := tcpSockets()
	if err != nil || now-orphans != inuse || orphans > most {
		return fmt.Sprintf("%d TCP sockets and %d orphans, not %d and %d, %v", now, orphans, inuse, most, err)
	}
	out, err := exec.Command("smcss", "-a").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") > 1 {
		return fmt.Sprintf("smcss -a: %v: %s", err, out)
	}
	return ""
}

// NothingLeft checks at the end of a test that no sockets are left, except for some orphans.
func NothingLeft(t *testing.T, orphans int) {
	t.Helper()
	inuse, _, err := tcpSockets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Await(t, 40*time.Second, func() string { return nullRemains(inuse, orphans) }) })
}

// UseNull loads our modules, with smc_null.ko or without it, and checks at the end of the test that no sockets are left.
func UseNull(t *testing.T, null bool) {
	t.Helper()
	LoadNull(t, null)
	NothingLeft(t, 0)
}

// LoadNull is UseNull without that check.
func LoadNull(t *testing.T, null bool) {
	t.Helper()
	NullGuest.Need(t)
	if !null {
		Run(t, "modprobe smc_diag; if grep -q '^smc_null ' /proc/modules; then rmmod smc_null; fi")
	} else {
		Run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	}
}
