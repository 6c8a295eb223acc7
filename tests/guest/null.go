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

// nullCaches are the slabs of our module's.
var nullCaches = []string{"smc_sock", "smc_rendezvous"}

// sockets is how many TCP sockets there are, and how many of no one's.
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

// remains says what is left of our sockets, other than inuse of TCP's, and so many orphans.
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

// settled checks at the end of a test that it has left nothing; but so many orphans of TCP's at most.
func NothingLeft(t *testing.T, orphans int) {
	t.Helper()
	inuse, _, err := tcpSockets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Await(t, 40*time.Second, func() string { return nullRemains(inuse, orphans) }) })
}

// modules loads our modules, with the transport that carries nothing, or without it. Nothing may be left of the test.
func UseNull(t *testing.T, null bool) {
	t.Helper()
	LoadNull(t, null)
	NothingLeft(t, 0)
}

func LoadNull(t *testing.T, null bool) {
	t.Helper()
	NullGuest.Need(t)
	if !null {
		Run(t, "modprobe smc_diag; if grep -q '^smc_null ' /proc/modules; then rmmod smc_null; fi")
	} else {
		Run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	}
}
