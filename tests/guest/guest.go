// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package guest has helpers for tests that run inside of a guest of the lab.
package guest

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Marker is a file that a test of the lab makes in its guests. It contains "short" or "full".
type Marker string

// Need skips the test anywhere else.
func (m Marker) Need(t testing.TB) {
	t.Helper()
	if _, err := os.Stat(string(m)); err != nil {
		t.Skip("runs in guests of the lab only, where there is " + string(m))
	}
}

// Full reports whether slow tests shall run.
func (m Marker) Full() bool {
	b, _ := os.ReadFile(string(m))
	return string(b) == "full"
}

// Run runs a shell script, fails the test if the script fails, and returns its output.
func Run(t testing.TB, script string) string {
	t.Helper()
	// Do not use the test's context, which has ended when the test cleans up. The timeout is long because a kernel with
	// checkers is slow.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/bin/sh", "-euc", script).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", script, err, out)
	}
	return string(out)
}

// Checked reports whether the kernel has the checkers that make it slower by an order of magnitude. Emulated RDMA then takes
// seconds for the data that a few busy connections have in flight, and with more connections its retries run out.
func Checked(t testing.TB) bool {
	t.Helper()
	release, err := Release()
	if err != nil {
		t.Fatal(err)
	}
	return strings.HasSuffix(release, "-debug")
}

// Release is that of the kernel, as uname -r has it.
func Release() (string, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "", err
	}
	return unix.ByteSliceToString(u.Release[:]), nil
}

// Set sets a sysctl for as long as the test runs. Like Need, it skips the test anywhere else.
func (m Marker) Set(t testing.TB, name, value string) {
	t.Helper()
	m.Need(t)
	before := strings.TrimSpace(Run(t, "sysctl -n "+name))
	Run(t, "sysctl -qw "+name+"="+value)
	t.Cleanup(func() { Run(t, "sysctl -qw "+name+"="+before) })
}

// Await polls a condition until it holds, and fails the test if that takes longer than d. The condition returns why it does not
// hold yet.
func Await(t testing.TB, d time.Duration, against func() string) {
	t.Helper()
	// The end of a test must be seen even if its context is over.
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
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

// Sockaddr returns an address in the format of system calls, and the protocol of AF_SMC for its family.
func Sockaddr(addr netip.AddrPort) (proto int, sa unix.Sockaddr) {
	if addr.Addr().Is4() {
		return 0, &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	}
	return 1, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
}

// Objects returns the number of objects of a slab cache in use, 0 if the cache does not exist.
func Objects(cache string) (int, error) {
	// Before this, objects that processors cache count as used.
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

// Left lists those of these caches that have objects in use, or "" if none has.
func Left(caches ...string) string {
	for _, c := range caches {
		if n, err := Objects(c); err != nil || n != 0 {
			return fmt.Sprintf("%d objects of %s are left, %v", n, c, err)
		}
	}
	return ""
}
