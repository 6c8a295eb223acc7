// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkFallback compares AF_SMC sockets of our module, whose connections all fall back to TCP,
// with TCP sockets in the same guest, with both ends on loopback. The figure is the median of the
// rounds' ratios of the rates: 1 is as fast as TCP. "bystanders" compares TCP sockets among 100
// listening AF_SMC sockets with TCP sockets alone. "noise" is the ratio of two equal sides. The
// figures count instructions of the guest's processor, because times on a busy machine could not
// show a difference of a percent.
func BenchmarkFallback(b *testing.B) {
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	lt := lab.Start(b, lab.Options{Kernel: lab.Newest(), CountedTime: true, KernelArgs: "smc.smcd=0", Programs: []string{dir}})
	if err := lt.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	lt.Must("a", "ip link set lo up")
	for _, job := range []string{"throughput", "latency", "connect", "bystanders", "noise"} {
		b.Run(job, func(b *testing.B) {
			var ratios []float64
			for b.Loop() {
				ratios = append(ratios, compare(b, lt, job)...)
			}
			s := spreadOf(ratios)
			b.ReportMetric(s.mid, "x-tcp")
			b.ReportMetric(s.low, "lower-quartile")
			b.ReportMetric(s.high, "upper-quartile")
		})
	}
}

// compare returns the ratio of each round.
func compare(b *testing.B, lt *lab.Test, job string) (ratios []float64) {
	b.Helper()
	for line := range strings.Lines(lt.Must("a", "smcflow compare --rounds 6 "+job)) {
		var challenger, peer, ratio float64
		if _, err := fmt.Sscan(line, &challenger, &peer, &ratio); err != nil {
			b.Fatalf("%q: %v", line, err)
		}
		ratios = append(ratios, ratio)
	}
	if len(ratios) == 0 {
		b.Fatal("no rounds")
	}
	return ratios
}
