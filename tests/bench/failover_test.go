// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/smckit/smckit/internal/lab"
)

// Limits of a failover, in milliseconds. A loss that the host does not see is noticed within the time of the queue pair's retries: seven
// after the first try, each after 4.096 µs << 15.
const (
	seenLimit   = 100
	unseenLimit = 8*4.096e-3*(1<<15) + 100
)

// BenchmarkFailover measures for how long connections stand still when one of the two links of their group is lost: the longest
// round of any of ten dialogues. A port that goes down is known at once, and a wire that loses everything when the adapter of the peer
// has acknowledged nothing for a second. Nothing lost is the figure to compare with. Wires come first: after a port has come back,
// links may cross over both.
func BenchmarkFailover(b *testing.B) {
	lt := linkedHosts(b)
	var usual float64 // the longest round without a loss: the guests of a busy machine stand still, too
	for _, loss := range []struct {
		name       string
		limit      float64
		away, back func()
	}{
		{"nothing", 0, func() {}, func() {}},
		{"wire cut", unseenLimit, lt.Wires[1].Cut, lt.Wires[1].Restore},
		{"port down", seenLimit, func() { lt.Must("b", "ip link set eth1 down") }, func() { lt.Must("b", "ip link set eth1 up") }},
	} {
		b.Run(loss.name, func(b *testing.B) {
			var stalls []float64
			for b.Loop() {
				stalls = append(stalls, longestRound(b, lt, func() {
					loss.away()
					if loss.name != "nothing" {
						awaitActive(b, lt, 1)
					}
				}))
				loss.back()
				// Another group has a second link at once. This one waits longer after each link that is lost soon after it has come.
				lt.Must("a", "smcr linkgroup delete $(smcr linkgroup | awk '/CLNT/ { print $1 }')")
			}
			s := spreadOf(stalls)
			if loss.limit == 0 {
				usual = s.mid
			} else if s.mid-usual > loss.limit {
				b.Errorf("connections stood still for %.0f ms, %.0f without a loss; the limit is %.0f more", s.mid, usual, loss.limit)
			}
			b.ReportMetric(s.mid, "ms-stall")
			b.ReportMetric(s.high, "ms-upper-quartile")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkLinks compares groups with two links with groups that have one, between the same hosts, in rounds with a turn of each.
func BenchmarkLinks(b *testing.B) {
	lt := linkedHosts(b)
	program := compileLoad(b)
	for _, h := range lt.Hosts {
		lt.Must(h.Name, "sysctl -qw net.ipv4.tcp_max_tw_buckets=1000000")
		install(b, h, program)
	}
	f := &field{ours: lt}
	for _, w := range []netWorkload{
		{job: "rr", request: 200, response: 1000, connections: 10},
		{job: "rr", request: 200, response: 1000, connections: 50},
		{job: "stream", connections: 1},
		{job: "stream", connections: 10},
		{job: "stream", connections: 50},
	} {
		b.Run(w.String(), func(b *testing.B) {
			var rounds []round
			for b.Loop() {
				r := round{}
				for i := range 2 {
					links := "12"[(len(rounds)+i)%2:][:1]
					r[links] = f.runOver(b, w, links)
				}
				rounds = append(rounds, r)
			}
			rate := ratio(rounds, "rate", "2", "1")
			b.ReportMetric(rate.mid, "two/one")
			b.ReportMetric(rate.low, "lower-quartile")
			b.ReportMetric(rate.high, "upper-quartile")
			b.ReportMetric(ratio(rounds, "busy_us", "2", "1").mid, "two/one-cpu")
		})
	}
}

// runOver runs a workload in a group with a number of links, which a connection keeps alive until all links are there.
func (f *field) runOver(b *testing.B, w netWorkload, links string) outcome {
	b.Helper()
	for _, h := range f.ours.Hosts {
		f.ours.Must(h.Name, "sysctl -qw net.smc.smcr_max_links_per_lgr="+links)
	}
	echo := f.ours.Serve("b", "", "echo", "10.0.0.2:5010")
	defer lab.Kill(b, echo)
	kept := f.ours.StartIn("a", "", "smcflow", "keep", "--pause", "1s", "10.0.0.2:5010")
	defer func() {
		lab.Kill(b, kept)
		f.ours.Must("a", "smcr linkgroup delete $(smcr linkgroup | awk '/SYM|SINGLE/ { print $1 }')")
	}()
	awaitActive(b, f.ours, int(links[0]-'0'))
	return f.run(b, w, "ours")
}

// linkedHosts boots two hosts with two adapters in one network, whose groups get two links.
func linkedHosts(b *testing.B) *lab.Test {
	b.Helper()
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	lt := lab.Start(b, lab.Options{Kernel: lab.Newest(), Hosts: 2, Wires: 2, Programs: []string{dir}})
	if err := lt.SetUpSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	lt.JoinWires()
	for _, h := range lt.Hosts {
		lt.Must(h.Name, "sysctl -qw net.smc.smcr_max_links_per_lgr=2")
	}
	return lt
}

// longestRound has ten dialogues spread over two links, does something, and returns the milliseconds of the longest round.
func longestRound(b *testing.B, lt *lab.Test, do func()) float64 {
	b.Helper()
	const at = "10.0.0.2:5002"
	echo := lt.Serve("b", "", "echo", at)
	defer lab.Kill(b, echo)
	keep := lt.StartIn("a", "", "smcflow", "keep", "--conns", "10", "--size", "200", "--pause", "5ms", at)
	defer lab.Kill(b, keep)
	awaitActive(b, lt, 2)
	spread := "smcr link | awk '/LINK_ACTIVE/ && $6 >= 5 { n++ } END { exit n != 2 }'"
	for _, h := range lt.Hosts {
		if err := h.WaitFor(b.Context(), spread); err != nil {
			b.Fatal(err)
		}
	}
	do()
	ctx, cancel := context.WithTimeout(b.Context(), lab.Scale(30*time.Second))
	defer cancel()
	if err := keep.Signal(unix.SIGTERM); err != nil {
		b.Fatal(err)
	}
	r, err := keep.Wait(ctx)
	if err != nil || r.Code != 0 {
		b.Fatalf("%v, %+v", err, r)
	}
	longest, err := time.ParseDuration(strings.TrimSpace(r.Stdout))
	if err != nil {
		b.Fatal(err)
	}
	return float64(longest) / float64(time.Millisecond)
}

// awaitActive waits until both hosts have a number of active links.
func awaitActive(b *testing.B, lt *lab.Test, n int) {
	b.Helper()
	for _, h := range lt.Hosts {
		if err := h.WaitFor(b.Context(), "test $(smcr link | grep -c LINK_ACTIVE) = "+string(rune('0'+n))); err != nil {
			b.Fatalf("%v\n%s", err, lt.Must(h.Name, "smcr link"))
		}
	}
}
