// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package bench compares the commands and the module with peers in the same run. Figures are
// ratios, so that they do not depend on the machine's speed. `make bench` runs it.
package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkStartup measures how long a command takes to print its version, as a multiple of the time of a static Go program
// that does nothing.
func BenchmarkStartup(b *testing.B) {
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	peer := filepath.Join(b.TempDir(), "nothing")
	source := peer + ".go"
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	build := exec.Command("go", "build", "-o", peer, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	for _, command := range []string{"smc_pnet", "smc_rnics", "smcss", "smcr", "smcd", "smcr-stats"} {
		b.Run(command, func(b *testing.B) {
			var ours, theirs time.Duration
			// Alternate between the two, so that a busy moment of the machine affects both.
			for b.Loop() {
				ours += runTime(b, filepath.Join(dir, command), "--version")
				theirs += runTime(b, peer)
			}
			b.ReportMetric(ours.Seconds()/theirs.Seconds(), "x-nothing")
		})
	}
}

func runTime(b *testing.B, argv ...string) time.Duration {
	b.Helper()
	begin := time.Now()
	if err := exec.Command(argv[0], argv[1:]...).Run(); err != nil {
		b.Fatal(err)
	}
	return time.Since(begin)
}

// BenchmarkManySockets lists 10,000 AF_SMC sockets on a real kernel, and compares this with
// iproute2's ss and 10,000 TCP sockets in the same guest.
func BenchmarkManySockets(b *testing.B) {
	const count = 10000
	lt := lab.StartSMC(b, lab.Options{Kernel: "6.12", Memory: 1536})
	for _, kind := range []string{"", "--tcp"} {
		lt.Must("a", fmt.Sprintf("ulimit -n 20000; smcflow hold --count %d %s >/run/held%s 2>&1 &", count, kind, kind))
		if err := lt.Host("a").WaitFor(b.Context(), "cat /run/held"+kind+"; grep -q ready /run/held"+kind); err != nil {
			b.Fatal(err)
		}
	}
	for _, args := range []string{"-a", "-aW", "-ap", "-a --json", "--summary"} {
		b.Run(args, func(b *testing.B) {
			var ours, theirs usage
			for b.Loop() {
				ours.add(measure(b, lt, "smcss "+args))
				theirs.add(measure(b, lt, "ss -tlan"))
			}
			b.ReportMetric(ours.seconds/theirs.seconds, "x-time-of-ss")
			b.ReportMetric(ours.peak/theirs.peak, "x-memory-of-ss")
			b.ReportMetric(ours.peak, "KiB-peak")
		})
	}
}

// usage is the total time of several runs, and their peak memory.
type usage struct{ seconds, peak float64 }

func (u *usage) add(v usage) {
	u.seconds += v.seconds
	u.peak = max(u.peak, v.peak)
}

func measure(b *testing.B, lt *lab.Test, command string) usage {
	b.Helper()
	var u usage
	out := lt.Must("a", "smcflow measure "+command)
	if _, err := fmt.Sscan(out, &u.seconds, &u.peak); err != nil {
		b.Fatalf("%q: %v", out, err)
	}
	return u
}

// BenchmarkBoot measures the time until two guests can run programs.
func BenchmarkBoot(b *testing.B) {
	lab.Need(b)
	for _, kernel := range lab.Series() {
		b.Run(kernel, func(b *testing.B) {
			for b.Loop() {
				l, err := lab.New(b.Context(), lab.Options{Kernel: kernel, Hosts: 2})
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
