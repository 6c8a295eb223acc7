// SPDX-License-Identifier: Apache-2.0

//go:build linux

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

// caches are the slabs of our module's.
var caches = []string{"smc_sock", "smc_rendezvous"}

// sockets is how many TCP sockets there are, and how many of no one's.
func sockets() (inuse, orphans string, err error) {
	b, err := os.ReadFile("/proc/net/sockstat")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "TCP:" {
			return f[2], f[4], nil
		}
	}
	return "", "", fmt.Errorf("no TCP in %s", b)
}

// remains says what is left of our sockets, other than inuse of TCP's.
func remains(inuse string) string {
	if left := guest.Left(caches...); left != "" {
		return left
	}
	now, orphans, err := sockets()
	if err != nil || now != inuse || orphans != "0" {
		return fmt.Sprintf("%s TCP sockets and %s orphans, not %s and 0, %v", now, orphans, inuse, err)
	}
	out, err := exec.Command("smcss", "-a").CombinedOutput()
	if err != nil || strings.Count(string(out), "\n") > 1 {
		return fmt.Sprintf("smcss -a: %v: %s", err, out)
	}
	return ""
}

// settled checks at the end of a test that it has left nothing.
func settled(t *testing.T) {
	t.Helper()
	inuse, _, err := sockets()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { guest.Await(t, 40*time.Second, func() string { return remains(inuse) }) })
}

// modules loads our modules, with the transport that carries nothing, or without it.
func modules(t *testing.T, null bool) {
	t.Helper()
	guests.Need(t)
	if !null {
		guest.Run(t, "modprobe smc_diag; if grep -q '^smc_null ' /proc/modules; then rmmod smc_null; fi")
	} else {
		guest.Run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	}
	settled(t)
}
