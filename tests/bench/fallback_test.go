// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// countingGuest starts a guest with our module, whose clock counts its processor's instructions.
func countingGuest(b *testing.B, kernelArgs string) *lab.Test {
	b.Helper()
	lt := bareGuest(b, kernelArgs)
	if err := lt.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	return lt
}

// bareGuest starts the same guest without the module.
func bareGuest(b *testing.B, kernelArgs string) *lab.Test {
	b.Helper()
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	lt := lab.Start(b, lab.Options{
		Kernel: lab.Newest(), CountedTime: true, KernelArgs: kernelArgs, Programs: []string{dir},
	})
	lt.Must("a", "ip link set lo up")
	return lt
}

// BenchmarkFallback compares AF_SMC sockets of our module, whose connections all fall back to TCP,
// with TCP sockets in the same guest, with both ends on loopback. The figure is the median of the
// rounds' ratios of the rates: 1 is as fast as TCP. "bystanders" compares TCP sockets among 100
// listening AF_SMC sockets with TCP sockets alone. "by-rule" is "connect" with sockets that are SMC
// by a rule of the policy. "remembered" is "connect" to a server that has declined, and that the module
// remembers, "remembered-by-rule" the same by a rule; "declined" is the same without that. "noise" is the ratio of two equal sides. The
// figures count instructions of the guest's processor, because times on a busy machine could not
// show a difference of a percent. No guest has fast string instructions, of which each byte would count as one.
func BenchmarkFallback(b *testing.B) {
	lt := countingGuest(b, "smc.smcd=0")
	for _, job := range []string{"throughput", "latency", "connect", "by-rule", "bystanders", "noise"} {
		b.Run(job, func(b *testing.B) { report(b, lt, job) })
	}
	// Now there is a device, and a server that declines. It is remembered for longer than turns wait for the hook to go.
	lt.Must("a", "modprobe smc_null match_reason=0x03030000; sysctl -qw net.smc.remember_peers=3600")
	for name, job := range map[string]string{"remembered": "connect", "remembered-by-rule": "by-rule"} {
		b.Run(name, func(b *testing.B) {
			report(b, lt, job)
			if peers := lt.Must("a", "smc_policy peers"); !strings.Contains(peers, "127.0.0.1:19999") {
				b.Errorf("the server is not remembered:\n%s", peers)
			}
		})
	}
	lt.Must("a", "sysctl -qw net.smc.remember_peers=0")
	b.Run("declined", func(b *testing.B) { report(b, lt, "connect") })
}

// BenchmarkRules compares TCP sockets under rules that do not match them with TCP sockets without rules: how many are made and closed,
// how many connections are made, and throughput. The first rule is for another port, which is known when a socket connects; the second is for
// another user, who is known when it is made. The figures are as those of BenchmarkFallback.
func BenchmarkRules(b *testing.B) {
	lt := countingGuest(b, "")
	for _, job := range []string{"noise", "port-sockets", "port-connect", "port-throughput", "user-sockets", "user-connect"} {
		b.Run(job, func(b *testing.B) { report(b, lt, job) })
	}
}

// report measures a job, and reports its ratios.
func report(b *testing.B, lt *lab.Test, job string) {
	b.Helper()
	var ratios []float64
	for b.Loop() {
		ratios = append(ratios, compare(b, lt, job)...)
	}
	reportRatios(b, ratios)
}

// reportRatios reports the median and the quartiles of ratios to TCP.
func reportRatios(b *testing.B, ratios []float64) {
	s := spreadOf(ratios)
	b.ReportMetric(s.mid, "x-tcp")
	b.ReportMetric(s.low, "lower-quartile")
	b.ReportMetric(s.high, "upper-quartile")
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
