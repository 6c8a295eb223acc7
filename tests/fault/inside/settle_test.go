// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// run runs a shell script, and fails the test if that fails.
func run(t *testing.T, script string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-euc", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// await polls a condition until there is nothing against it any more.
func await(t *testing.T, d time.Duration, against func() string) {
	t.Helper()
	// The end of a test must be seen even if its context is over.
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		text := against()
		if text == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %v: %s", d, text)
		}
	}
}

// caches are the slabs of our module's.
var caches = []string{"smc_sock", "smc_rendezvous"}

// objects is how many objects of a cache are in use; 0 if there is no such cache.
func objects(cache string) (int, error) {
	// What a processor keeps for itself counts as used until then.
	_ = os.WriteFile("/sys/kernel/slab/"+cache+"/shrink", []byte("1"), 0)
	b, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == cache {
			return strconv.Atoi(f[1])
		}
	}
	return 0, nil
}

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
	for _, c := range caches {
		if n, err := objects(c); err != nil || n != 0 {
			return fmt.Sprintf("%d objects of %s are left, %v", n, c, err)
		}
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
	t.Cleanup(func() { await(t, 40*time.Second, func() string { return remains(inuse) }) })
}

// modules loads our modules, with the transport that carries nothing, or without it.
func modules(t *testing.T, null bool) {
	t.Helper()
	needGuest(t)
	if !null {
		run(t, "modprobe smc_diag; if grep -q '^smc_null ' /proc/modules; then rmmod smc_null; fi")
	} else {
		run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid show | grep -q SMCKIT.LAB || smcr ueid add SMCKIT.LAB")
	}
	settled(t)
}
