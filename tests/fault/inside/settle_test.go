// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside is what tests/fault runs in a guest that has our module. Anywhere else its tests are skipped.
package inside

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
)

// guests is made by tests/fault only, in its guests.
const guests guest.Marker = "/run/smckit-fault"

// caches are the slabs of our module's.
var caches = []string{"smc_sock", "smc_rendezvous"}

// sockets is how many TCP sockets there are, and how many of no one's.
func sockets() (inuse, orphans int, err error) {
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

// remains says what is left of our sockets, other than inuse of TCP's, and so many orphans.
func remains(inuse, most int) string {
	if left := guest.Left(caches...); left != "" {
		return left
	}
	now, orphans, err := sockets()
	if err != nil || now-orphans != inuse || orphans > most {
		return fmt.Sprintf("%d TCP sockets and %d orphans, not %d and %d, %v", now, orphans, inuse, most, err)
	}
	out, err := exec.Command("smcss", "-a").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") > 1 {
		return fmt.Sprintf("smcss -a: %v: %s", err, out)
	}
	return ""
}

// settled checks at the end of a test that it has left nothing; but so many orphans of TCP's at most.
func settled(t *testing.T, orphans int) {
	t.Helper()
	inuse, _, err := sockets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { guest.Await(t, 40*time.Second, func() string { return remains(inuse, orphans) }) })
}

// modules loads our modules, with the transport that carries nothing, or without it. Nothing may be left of the test.
func modules(t *testing.T, null bool) {
	t.Helper()
	load(t, null)
	settled(t, 0)
}

func load(t *testing.T, null bool) {
	t.Helper()
	guests.Need(t)
	if !null {
		guest.Run(t, "modprobe smc_diag; if grep -q '^smc_null ' /proc/modules; then rmmod smc_null; fi")
	} else {
		guest.Run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	}
}
