// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package onehost tests connections of a host with itself, over each transport: SMC-D over the loopback device, SMC-R, and TCP, which they
// fall back to. No byte is lost, doubled or in the wrong place, what happens to one connection does not disturb another, thousands of them
// fit, and in the end nothing of them is left.
package onehost

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const (
	inside = "github.com/smckit/smckit/tests/onehost/inside"
	marker = "/run/smckit-smcd"
)

// TestSMCD boots one guest for each kernel, whose connections with itself are SMC-D. In the end the modules can be unloaded.
func TestSMCD(t *testing.T) {
	lab.EachKernel(t, smcd)
}

func smcd(t *testing.T, kernel string, length lab.Length) {
	lt := start(t, kernel, length)
	run(t, lt, parts(length))
	if os.Getenv("SMCKIT_PART") == "" {
		lt.GoTest(t, "a", "github.com/smckit/smckit/tests/badpeer", "^TestForgedSMCD")
	}
	if length == lab.LengthShort {
		heldGroup(t, lt)
	}
	locked := lockDown(t, lt)
	if locked {
		rulesUnderLockdown(t, lt)
	}
	unloads(t, lt)
	if locked {
		notLoaded(t, lt)
	}
}

// heldGroup runs a test of inside whose connections are SMC-R. Full runs have it in TestSMCRWithItself.
func heldGroup(t *testing.T, lt *lab.Test) {
	t.Helper()
	const part = "HeldGroup"
	if !slices.Contains(lab.Parts(part), part) {
		return
	}
	if err := lt.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "echo "+lab.SelfAddr+" >/run/smckit-here")
	lt.GoTest(t, "a", inside, "^Test"+part+"$")
}

// TestLittleMemory boots a guest for each kernel that has as much memory as SMC-D could take for data, if nothing limited it.
func TestLittleMemory(t *testing.T) {
	if !lab.Full() {
		t.Skip("takes minutes: SMCKIT_FULL=1")
	}
	lab.EachKernel(t, func(t *testing.T, kernel string, length lab.Length) {
		lt := lab.StartInside(t, lab.Options{Kernel: kernel, CPUs: 2, Memory: 512}, marker, length)
		run(t, lt, []string{"Pressure"})
	})
}

// start boots a guest for the tests of inside.
func start(t *testing.T, kernel string, length lab.Length) *lab.Test {
	t.Helper()
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 2048,
		KernelArgs: "slab_nomerge", // so that /proc/slabinfo counts our objects
	}, marker, length)
	// Beyond this limit, sockets skip TIME-WAIT. Below it, they use up the ports of a client that connects all the time.
	lt.Must("a", "modprobe -aq veth tun tcp_diag inet_diag || :; "+
		"sysctl -qw net.ipv4.tcp_max_tw_buckets=100 net.ipv4.ip_local_port_range='15000 60999'")
	return lt
}

// run runs tests of inside by parts, each of which has a deadline of its own.
func run(t *testing.T, lt *lab.Test, parts []string) {
	t.Helper()
	for _, part := range lab.Parts(parts...) {
		lt.GoTest(t, "a", inside, "^Test("+part+")")
	}
}

// unloads checks that a socket keeps the module, and that nothing else does.
func unloads(t *testing.T, lt *lab.Test) {
	t.Helper()
	sink := lt.Serve("a", "", "sink", "127.0.0.1:7999")
	if r := lt.Run("a", "rmmod", "smc_diag", "smc"); r.Code == 0 || !strings.Contains(r.Stderr, "in use") {
		t.Errorf("unloading while a socket is open: %+v", r)
	}
	lab.Kill(t, sink)
	// Rules do not keep the module, and sockets can be made when it has gone with them.
	lt.Must("a", "smc_policy add smc")
	if r := lt.Run("a", "sh", "-c", "modprobe -rq smc_diag; rmmod smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
	if r := lt.Run("a", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/1"); !strings.Contains(r.Stderr, "refused") {
		t.Errorf("a socket after that: %+v", r)
	}
}

// parts are patterns of tests, each of which runs with a deadline of its own. Full runs have Kill, ScaleCycles and
// RulesHook five times, as one deadline is too short for all their rounds.
func parts(length lab.Length) []string {
	all := []string{"Sizes|Chunks|Rings", "Mixed|ManyConnections", "Kill", "Scale", "Rules", "Memory", "Policy|Namespaces$|NamespacesKilled|NamespacesLeftOpen|Abort|Accepted|ListenActive|OptionsRefused|Corked|Reuseport|Migrate|Killed|Deferred|IPsec", "Class", "Failing", "NothingReserved"}
	if length == lab.LengthFull {
		for range 4 {
			all = append(all, "Kill", "ScaleCycles", "RulesHook")
		}
	}
	return all
}
