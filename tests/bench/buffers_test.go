// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// bufferSizes are the sizes of receive buffers that the study of SMC-D compares, in the order of the first round.
var bufferSizes = []string{"128KiB", "1MiB"}

// bufferBytesD and bufferBytesR are the values of net.smc.rmem for each size.
var (
	bufferBytesD = map[string]int{"128KiB": 128 << 10 / 4, "1MiB": 1 << 20 / 4} // SMC-D multiplies net.smc.rmem by four
	bufferBytesR = map[string]int{"128KiB": 128 << 10, "1MiB": 1 << 20}
)

// BenchmarkBuffers compares receive buffers of 128 KiB and 1 MiB, over SMC-D by loopback in one
// guest, and over SMC-R between two guests. One iteration is a round with one turn for each size.
func BenchmarkBuffers(b *testing.B) {
	b.Run("SMCD", func(b *testing.B) {
		a := newArena(b)
		var smc tally
		compareBuffers(b, []int{1, 10, 50, 250}, func(b *testing.B, job, size string, connections int) outcome {
			setBuffers(a.Test, bufferBytesD[size])
			return a.turn(b, workload{job: job, connections: connections}, "smc", &smc)
		})
		if smc.share() != 1 {
			b.Errorf("%d ends of connections used SMC-D, %d TCP", smc.smcd, smc.tcp)
		}
	})
	b.Run("SMCR", func(b *testing.B) {
		f := newField(b)
		for _, h := range f.ours.Hosts {
			// Otherwise the first connections have buffers that are larger than net.smc.rmem.
			f.ours.Must(h.Name, "sysctl -qw net.smc.smcr_large_conns_per_lgr=0")
		}
		// 250 connections with 1 MiB in each direction need more memory than these guests have.
		compareBuffers(b, []int{1, 10, 50}, func(b *testing.B, job, size string, connections int) outcome {
			setBuffers(f.ours, bufferBytesR[size])
			return f.run(b, netWorkload{job: job, request: 200, response: 1000, connections: connections}, "ours")
		})
	})
}

// setBuffers sets the buffer size of new connections on all hosts, in the unit of net.smc.rmem.
func setBuffers(lt *lab.Test, bytes int) {
	for _, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf("sysctl -qw net.smc.rmem=%[1]d net.smc.wmem=%[1]d", bytes))
	}
}

// compareBuffers runs rounds of requests and of streams over n connections, and prints a table.
func compareBuffers(b *testing.B, connections []int, turn func(b *testing.B, job, size string, connections int) outcome) {
	b.Helper()
	var rows strings.Builder
	for _, job := range []string{"rr", "stream"} {
		for _, n := range connections {
			b.Run(job+"/"+strconv.Itoa(n), func(b *testing.B) {
				var rounds []round
				report := watchHost(b)
				for b.Loop() {
					r := round{}
					for i := range bufferSizes {
						size := bufferSizes[(i+len(rounds))%len(bufferSizes)]
						r[size] = turn(b, job, size, n)
					}
					rounds = append(rounds, r)
				}
				report()
				rate := ratio(rounds, "rate", "1MiB", "128KiB")
				b.ReportMetric(rate.mid, "1MiB/128KiB")
				fmt.Fprintf(&rows, "| %s | %d | %.2f (%.2f to %.2f) | %.2f |\n", job, n, rate.mid, rate.low, rate.high,
					ratio(rounds, "busy_us", "1MiB", "128KiB").mid)
			})
		}
	}
	fmt.Printf("\n%s: 1 MiB to 128 KiB\n\n| workload | connections | rate | processor time |\n|---|---|---|---|\n%s\n", b.Name(), rows.String())
}
