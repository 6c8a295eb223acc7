// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package sysfuzz makes random system calls on AF_SMC sockets in guests. The fuzzer itself is in src/; to run a program of
// it again, see docs/lab.md.
package sysfuzz

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// TestBuild compiles the fuzzer without a warning.
func TestBuild(t *testing.T) { compile(t) }

func compile(t *testing.T) (program string) { return lab.CompileC(t, "src", "-O1") }

// TestSystemCalls runs random programs for a minute on the newest kernel, and for an hour on each in full runs: a third of
// the time without SMC-D by loopback, so that connections are SMC-R, the rest with it. $SMCKIT_SEED is the seed of a run,
// which the log has, and $SMCKIT_FUZZTIME its duration.
func TestSystemCalls(t *testing.T) {
	lab.EachKernel(t, func(t *testing.T, kernel string, _ lab.Length) { fuzz(t, kernel) })
}

// duration is how long the fuzzer runs.
func duration(t *testing.T) time.Duration {
	if s := os.Getenv("SMCKIT_FUZZTIME"); s != "" {
		d, err := time.ParseDuration(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if lab.Full() {
		return time.Hour
	}
	return time.Minute
}

const (
	inside = "/run/sysfuzz"
	// spare is the memory that the kernel may keep for reuse: lists of free objects for each processor, tables that grew.
	spare = 16 << 10
)

func fuzz(t *testing.T, kernel string) {
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	lt := lab.Start(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1536, Programs: []string{programs}, KernelArgs: "slab_nomerge",
	})
	fuzzer, err := os.ReadFile(compile(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := lt.Host("a").WriteFile(t.Context(), inside, fuzzer, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := lt.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	if err := lt.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "modprobe -aq tun tls; sysctl -qw kernel.unprivileged_userns_clone=1 || :")
	d := duration(t)
	seed := os.Getenv("SMCKIT_SEED")
	if seed == "" {
		seed = strconv.FormatInt(time.Now().UnixNano()%1e9, 10)
	}
	t.Logf("kernel %s: SMCKIT_SEED=%s SMCKIT_FUZZTIME=%v", kernel, seed, d)
	// The first part also makes the allocations that the kernel never frees.
	lt.Must("a", "sysctl -qw net.smc.loopback=0")
	run(t, lt, seed, d/3)
	before := kernelMemory(t, lt)
	lt.Must("a", "sysctl -qw net.smc.loopback=2")
	run(t, lt, seed, d-d/3)
	reached(t, lt)
	unload(t, lt)
	if after := kernelMemory(t, lt); after > before+spare {
		t.Errorf("the kernel has %d KiB, with the module and before the programs it had %d", after, before)
	}
}

// run runs the fuzzer.
func run(t *testing.T, lt *lab.Test, seed string, d time.Duration) {
	t.Helper()
	hang := int(lab.Scale(30 * time.Second).Seconds())
	// The last program has that long to end, and so has a well-behaved client.
	ctx, cancel := context.WithTimeout(t.Context(), d+lab.Scale(90*time.Second))
	defer cancel()
	r, err := lt.Host("a").Run(ctx, lab.Cmd{Argv: []string{
		inside, "--seed", seed, "--seconds", strconv.Itoa(int(d.Seconds())), "--hang", strconv.Itoa(hang),
	}})
	text := abridge(r.Stdout)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	t.Log(text)
	if r.Code != 0 {
		t.Fatalf("sysfuzz has found something: exit status %d\n%s%s%s", r.Code, text, r.Stderr, counted(lt))
	}
}

// counted describes the guest for somebody who looks for the fault: why TCP has reset or refused connections, and what SMC has counted.
func counted(lt *lab.Test) string {
	return lt.Run("a", "sh", "-c", `for f in netstat snmp; do
	awk '/^Tcp/ { if (n++ % 2) for (i = 2; i <= NF; i++) { if ($i) print name[i], $i } else split($0, name) }' /proc/net/$f
done; smcr -d stats; smcd -d stats; cat /proc/loadavg`).Stdout
}

// abridge removes the lines that name programs as they start, except for the last ones.
func abridge(output string) string {
	const last = 12 // twice as many as there are workers
	lines := strings.Split(strings.TrimSpace(output), "\n")
	var kept []string
	started := 0
	for _, l := range slices.Backward(lines) {
		if strings.HasPrefix(l, "run ") {
			if started++; started > last {
				continue
			}
		}
		kept = append(kept, l)
	}
	slices.Reverse(kept)
	return strings.Join(kept, "\n")
}

// TestAbridge checks that the lines which explain a failure are kept.
func TestAbridge(t *testing.T) {
	var long strings.Builder
	long.WriteString("seed 1\n")
	for i := range 100 {
		fmt.Fprintf(&long, "run 0.%d\n", i)
	}
	long.WriteString("cannot be killed\n")
	got := abridge(long.String())
	if !strings.HasPrefix(got, "seed 1\nrun 0.88\n") || !strings.HasSuffix(got, "run 0.99\ncannot be killed") {
		t.Errorf("%s", got)
	}
}

// reached fails the test if the programs have not made connections of each kind.
func reached(t *testing.T, lt *lab.Test) {
	t.Helper()
	d, r := lt.Counters("a"), lt.CountersR("a")
	t.Logf("SMC-D %+v, SMC-R %+v", d, r)
	if d.Connections.ServerV2 == 0 || r.Connections.ServerV2 == 0 || d.Fallback.Server.Total == 0 {
		t.Error("connections of some kind are missing")
	}
}

// unload removes the modules: no socket, connection or namespace that needs them may be left.
func unload(t *testing.T, lt *lab.Test) {
	t.Helper()
	// Sockets in namespaces end with those, which the kernel does in the background.
	lt.Must("a", "rmmod smc_diag; for i in $(seq 200); do rmmod smc 2>/run/why && exit; sleep 0.2; done; cat /run/why; exit 1")
}

// kernelMemory returns the memory that the kernel has allocated and cannot reclaim, in KiB.
func kernelMemory(t *testing.T, lt *lab.Test) int {
	t.Helper()
	out := lt.Must("a", `for f in /sys/kernel/slab/*/shrink; do echo 1 >$f; done 2>/dev/null || :
awk '/^(SUnreclaim|Unevictable|VmallocUsed):/ { n += $2 } END { print n }' /proc/meminfo`)
	n, err := strconv.Atoi(strings.TrimSpace(out))
	if err != nil {
		t.Fatalf("/proc/meminfo: %v", err)
	}
	return n
}
