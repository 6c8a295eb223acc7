// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkAuto compares a rule with "auto" for everything with one that says SMC and one that says TCP, for the traffic of two services:
// "short" has 200 connections that move a byte each, "long" has one that moves 16 MiB, "mixed" has both. Both ends are on loopback. The
// figures are medians of the rounds' ratios of the rates; x-better is that to the better of the other two in the same round. They count
// instructions of the guest's processor, as those of BenchmarkFallback do. A round before the first lets the services learn.
func BenchmarkAuto(b *testing.B) {
	lt := countingGuest(b, "")
	lt.Must("a", "ip link set lo up")
	for _, traffic := range []string{"short", "long", "mixed"} {
		b.Run(traffic, func(b *testing.B) {
			ratios := map[string][]float64{}
			serviceTimes(b, lt, traffic, 0)
			for b.Loop() {
				for i := range 6 {
					took := serviceTimes(b, lt, traffic, i)
					ratios["x-tcp"] = append(ratios["x-tcp"], took["tcp"]/took["auto"])
					ratios["x-smc"] = append(ratios["x-smc"], took["smc"]/took["auto"])
					ratios["x-better"] = append(ratios["x-better"], min(took["tcp"], took["smc"])/took["auto"])
				}
			}
			for name, values := range ratios {
				b.ReportMetric(spreadOf(values).mid, name)
			}
		})
	}
	b.Log("\n" + lt.Must("a", "smc_policy auto"))
}

// serviceTimes returns the seconds that the traffic takes by each verdict. Each round begins with another one, so that a trend favours none.
func serviceTimes(b *testing.B, lt *lab.Test, traffic string, n int) map[string]float64 {
	b.Helper()
	rules := []string{"tcp", "smc", "auto"}
	took := map[string]float64{}
	for i := range rules {
		rule := rules[(n+i)%len(rules)]
		out := lt.Must("a", "smc_policy flush >/dev/null && smc_policy add "+rule+" >/dev/null && smcflow services "+traffic)
		var s float64
		if _, err := fmt.Sscan(strings.TrimSpace(out), &s); err != nil {
			b.Fatalf("%q: %v", out, err)
		}
		took[rule] = s
	}
	return took
}
