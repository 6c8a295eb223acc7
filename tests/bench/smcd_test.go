// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

var (
	allowFallback = flag.Bool("allow-fallback", false, "measure AF_SMC connections that have fallen back to TCP, too")
	countedTime   = flag.Bool("counted-time", false, "count the guest's instructions instead of seconds")
)

// BenchmarkSMCD compares SMC-D over loopback with TCP over loopback and with AF_UNIX in the same
// guest. One iteration is a round with one turn for each of them. Figures are medians of the
// rounds' ratios: rates, where more is better, and the time that the machine's processors took for
// each transaction, megabyte or connection. smcd-share is the share of AF_SMC connection ends that
// used SMC-D instead of TCP. Any value other than 1 is a failure, unless -allow-fallback is set.
//
// The guest's clock is the wall clock, so the machine should have nothing else to do. With
// -counted-time this is not necessary, but then the guest's two processors take turns, so the
// figures do not show parallel work and contention between them. elsewhere is the share of this
// machine that other processes used.
func BenchmarkSMCD(b *testing.B) {
	a := newArena(b)
	var results []result
	for _, w := range workloads {
		b.Run(w.String(), func(b *testing.B) {
			r := result{workload: w}
			var smc tally
			report := watchHost(b)
			for b.Loop() {
				r.rounds = append(r.rounds, a.round(b, w, len(r.rounds), &smc))
			}
			report()
			r.publish(b)
			b.ReportMetric(smc.share(), "smcd-share")
			results = append(results, r)
		})
	}
	// Print the table, because the testing package does not show the log of a benchmark with parts.
	fmt.Printf("\n%s\n", table(results))
}

// arena is the guest in which all families take their turns.
type arena struct{ *lab.Test }

const loadInside = "/run/load"

func newArena(b *testing.B) *arena {
	b.Helper()
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	a := &arena{lab.Start(b, lab.Options{
		Kernel: lab.Newest(), CPUs: 2, Memory: 2048, Programs: []string{dir},
		CountedTime: *countedTime,
	})}
	a.Must("a", "! grep -qwE 'erms|fsrm' /proc/cpuinfo")
	if err := a.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	install(b, a.Host("a"), compileLoad(b))
	// Beyond this limit, connections skip TIME-WAIT and cost less.
	a.Must("a", "ip link set lo up; sysctl -qw net.ipv4.tcp_max_tw_buckets=1000000")
	return a
}

// round runs the workload once with each family, and counts the outcomes of AF_SMC's connections.
func (a *arena) round(b *testing.B, w workload, n int, smc *tally) round {
	b.Helper()
	r := round{}
	for _, family := range turns(n) {
		r[family] = a.turn(b, w, family, smc)
	}
	return r
}

// turn runs the workload with one family.
func (a *arena) turn(b *testing.B, w workload, family string, smc *tally) outcome {
	b.Helper()
	times := " --warmup 0.5 --seconds 2.5"
	if *countedTime {
		times = " --warmup 0.05 --seconds 0.2" // counted time takes as long, and varies less
	}
	before := a.tally()
	o, err := parseOutcome(a.Must("a", loadInside+" "+strings.Join(w.args(family), " ")+times), w.names())
	if err != nil {
		b.Fatal(err)
	}
	if family == "smc" {
		t := a.tally().since(before)
		if t.share() != 1 && !*allowFallback {
			b.Fatalf("%d ends of connections were SMC-D's, %d TCP's (-allow-fallback measures it anyway): %s", t.smcd, t.tcp,
				a.Must("a", "smcd -ad stats"))
		}
		smc.smcd += t.smcd
		smc.tcp += t.tcp
	}
	return o
}

// tally counts ends of AF_SMC connections by outcome.
type tally struct{ smcd, tcp int }

func (t tally) since(before tally) tally { return tally{t.smcd - before.smcd, t.tcp - before.tcp} }

func (t tally) share() float64 { return float64(t.smcd) / float64(t.smcd+t.tcp) }

func (a *arena) tally() tally {
	c := a.Counters("a")
	return tally{
		smcd: c.Connections.ClientV1 + c.Connections.ClientV2 + c.Connections.ServerV1 + c.Connections.ServerV2,
		tcp:  c.Fallback.Client.Total + c.Fallback.Server.Total,
	}
}

// publish reports the figures of a workload.
func (r result) publish(b *testing.B) {
	if r.job == "idle" {
		for _, family := range families {
			b.ReportMetric(figure(r.rounds, "connected_kib", family).mid, family+"-KiB")
			b.ReportMetric(figure(r.rounds, "used_kib", family).mid, family+"-used-KiB")
		}
		return
	}
	for _, family := range families {
		// The scheduler causes this, mostly on a busy machine. If a connection hung, the load
		// generator would not have ended.
		if n := figure(r.rounds, "starved", family).high; n > 0 {
			b.Logf("of %d connections over %s, %.0f got no turn", r.connections, family, n)
		}
	}
	b.ReportMetric(figure(r.rounds, "rate", "unix").mid, "unix/s")
	rate := ratio(r.rounds, "rate", "smc", "unix")
	b.ReportMetric(rate.mid, "smc/unix")
	b.ReportMetric(rate.low, "smc/unix-lower-quartile")
	b.ReportMetric(rate.high, "smc/unix-upper-quartile")
	for _, pair := range [][2]string{{"smc", "unix"}, {"smc", "tcp"}, {"tcp", "unix"}} {
		name := pair[0] + "/" + pair[1]
		b.ReportMetric(ratio(r.rounds, "rate", pair[0], pair[1]).mid, name)
		// The processor time of the whole machine, and of the processes alone.
		b.ReportMetric(ratio(r.rounds, "busy_us", pair[0], pair[1]).mid, name+"-cpu")
		b.ReportMetric(ratio(r.rounds, "cpu_us", pair[0], pair[1]).mid, name+"-process-cpu")
	}
}

func TestTally(t *testing.T) {
	if got := (tally{10, 4}).since(tally{7, 3}); got != (tally{3, 1}) || got.share() != 0.75 {
		t.Errorf("%+v", got)
	}
}
