// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkNoRules compares TCP sockets in a guest with our module, which has no rules, with those in a guest of the same kernel without the
// module. The guests take turns, and each figure is the median of the rounds' ratios of the rates, which count instructions as those of
// BenchmarkFallback do. "noise" is the ratio for two guests without the module.
func BenchmarkNoRules(b *testing.B) {
	bare, again, ours := bareGuest(b, ""), bareGuest(b, ""), countingGuest(b, "")
	for _, job := range []string{"sockets", "connect", "throughput", "latency"} {
		b.Run(job, func(b *testing.B) { reportGuests(b, ours, bare, job) })
		b.Run("noise-"+job, func(b *testing.B) { reportGuests(b, again, bare, job) })
	}
}

// reportGuests has two guests do a job in turns, and reports the ratios of their rates.
func reportGuests(b *testing.B, challenger, peer *lab.Test, job string) {
	b.Helper()
	var ratios []float64
	for b.Loop() {
		ours, theirs := rates(b, challenger, job), rates(b, peer, job)
		for i := range ours {
			ratios = append(ratios, ours[i]/theirs[i])
		}
	}
	reportRatios(b, ratios)
}

// rates returns the rate of each round of a job.
func rates(b *testing.B, lt *lab.Test, job string) (all []float64) {
	b.Helper()
	const rounds = 6
	for line := range strings.Lines(lt.Must("a", fmt.Sprintf("smcflow rate --rounds %d %s", rounds, job))) {
		var rate float64
		if _, err := fmt.Sscan(line, &rate); err != nil || rate <= 0 {
			b.Fatalf("%q: %v", line, err)
		}
		all = append(all, rate)
	}
	if len(all) != rounds {
		b.Fatalf("%d rounds", len(all))
	}
	return all
}

// BenchmarkStalls measures how late a process is at most while a thousand rules are replaced a hundred times: it wakes every millisecond, and makes,
// connects and closes a socket. It comes before all others, so it waits for locks and for code that cannot be interrupted, not for its turn. The
// clock counts instructions. More than a millisecond is too late.
func BenchmarkStalls(b *testing.B) {
	lt := countingGuest(b, "")
	var busy, quiet []float64
	for b.Loop() {
		var during, without float64
		out := lt.Must("a", "smcflow stalls")
		if _, err := fmt.Sscan(out, &during, &without); err != nil {
			b.Fatalf("%q: %v", out, err)
		}
		busy, quiet = append(busy, during), append(quiet, without)
	}
	during, without := spreadOf(busy), spreadOf(quiet)
	b.ReportMetric(during.mid, "µs-longest")
	b.ReportMetric(during.high, "µs-longest-upper-quartile")
	b.ReportMetric(without.mid, "µs-longest-without-changes")
	if during.mid > 1000 {
		b.Errorf("%.0f µs late while the rules change", during.mid)
	}
}
