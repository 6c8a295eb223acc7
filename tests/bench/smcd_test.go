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

// BenchmarkSMCD compares SMC-D over loopback with TCP over loopback and with AF_UNIX in the same guest, one iteration a
// round in which each has its turn. Figures are medians of the rounds' ratios: rates, where more is better, and what the
// machine's processors took for each transaction, megabyte or connection. smcd-share is how many ends of connections were
// SMC-D's and not TCP's; anything but 1 is a failure, unless -allow-fallback says otherwise.
//
// The guest's clock is the wall's, which wants a machine that has nothing else to do. -counted-time does not, but then the
// guest's two processors take turns: what they do at the same time, and what they make each other wait for, is not seen.
// elsewhere is the share of this machine that others had.
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
	// A log of a benchmark that has parts is not shown.
	fmt.Printf("\n%s\n", table(results))
}

// arena is the guest that all have their turns in.
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
		// Under emulation "rep movs" is so slow that copying would dominate, and the family that copies least would win.
		CPUFeatures: "erms=off,fsrm=off",
		CountedTime: *countedTime,
	})}
	a.Must("a", "! grep -qwE 'erms|fsrm' /proc/cpuinfo")
	if err := a.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	install(b, a.Host("a"), compileLoad(b))
	// Past the limit, connections skip TIME-WAIT, and are cheaper.
	a.Must("a", "ip link set lo up; sysctl -qw net.ipv4.tcp_max_tw_buckets=1000000")
	return a
}

// round gives each family its turn, and counts the outcomes of AF_SMC's connections.
func (a *arena) round(b *testing.B, w workload, n int, smc *tally) round {
	b.Helper()
	r := round{}
	for _, family := range turns(n) {
		r[family] = a.turn(b, w, family, smc)
	}
	return r
}

// turn is that of one family.
func (a *arena) turn(b *testing.B, w workload, family string, smc *tally) outcome {
	b.Helper()
	times := " --warmup 0.5 --seconds 2.5"
	if *countedTime {
		times = " --warmup 0.05 --seconds 0.2" // which take as long, and vary less
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
		// The scheduler's doing, mostly of a busy machine's: the load generator would not have ended if one hung.
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
		// Of the whole machine, and of the processes alone.
		b.ReportMetric(ratio(r.rounds, "busy_us", pair[0], pair[1]).mid, name+"-cpu")
		b.ReportMetric(ratio(r.rounds, "cpu_us", pair[0], pair[1]).mid, name+"-process-cpu")
	}
}

func TestTally(t *testing.T) {
	if got := (tally{10, 4}).since(tally{7, 3}); got != (tally{3, 1}) || got.share() != 0.75 {
		t.Errorf("%+v", got)
	}
}
