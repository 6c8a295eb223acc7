// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// workload is a job that each family of sockets runs in turn.
type workload struct {
	job         string
	connections int
	// target is the goal for SMC-D as the table prints it.
	target string
}

// workloads are those of the published study of SMC-D, with its numbers of connections and bytes,
// and some that it omits. The memory workload runs first, while the kernel's caches are small.
var workloads = []workload{
	{"idle", 1000, "40 KiB"},
	{"rr", 1, "0.95"},
	{"rr", 10, "1.0"},
	{"rr", 50, "1.0"},
	{"rr", 250, "1.0"},
	{"stream", 1, "1.0; TCP: 1.0"},
	{"stream", 10, "1.0; TCP: 1.0"},
	{"stream", 50, "1.0; TCP: 1.0"},
	{"stream", 250, "1.0; TCP: 1.0"},
	{"connect", 1, "TCP: 0.9"},
}

func (w workload) String() string { return w.job + "/" + strconv.Itoa(w.connections) }

// args returns the arguments of the load generator.
func (w workload) args(family string) []string {
	return []string{"--family", family, "--job", w.job, "--connections", strconv.Itoa(w.connections)}
}

// names returns the names of the values that the load generator must print.
func (w workload) names() []string {
	if w.job == "idle" {
		return ofIdle
	}
	return ofTraffic
}

// families lists the families in the order of the first round.
var families = []string{"unix", "tcp", "smc"}

// turns returns the order of the families in a round. It rotates, so that a trend over time favours
// no family.
func turns(round int) (order []string) {
	for i := range families {
		order = append(order, families[(i+round)%len(families)])
	}
	return order
}

// round is the outcome of each family's turn.
type round map[string]outcome

// spread is a median with its quartiles, which show how reliable the median is.
type spread struct{ low, mid, high float64 }

// spreadOf sorts values, which must not be empty.
func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{values[n/4], values[n/2], values[n*3/4]}
}

// ratio compares two families, round by round.
func ratio(rounds []round, name, family, peer string) spread {
	var values []float64
	for _, r := range rounds {
		values = append(values, r[family][name]/r[peer][name])
	}
	return spreadOf(values)
}

// figure returns the result of one family.
func figure(rounds []round, name, family string) spread {
	var values []float64
	for _, r := range rounds {
		values = append(values, r[family][name])
	}
	return spreadOf(values)
}

// result contains all rounds of a workload.
type result struct {
	workload
	rounds []round
}

// table returns a Markdown table of the speed of SMC-D, and of its costs in processor time and
// memory.
func table(results []result) string {
	var speed, memory strings.Builder
	for _, r := range results {
		switch {
		case len(r.rounds) == 0:
		case r.job == "idle":
			for _, family := range families {
				fmt.Fprintf(&memory, "| %s | %.1f KiB | %.1f KiB |\n", family,
					figure(r.rounds, "connected_kib", family).mid, figure(r.rounds, "used_kib", family).mid)
			}
		default:
			peer := ratio(r.rounds, "rate", "smc", "unix")
			fmt.Fprintf(&speed, "| %s | %d | %.2f (%.2f to %.2f) | %.2f | %s | %.2f | %.2f | %.2f |\n", r.job, r.connections,
				peer.mid, peer.low, peer.high, ratio(r.rounds, "rate", "smc", "tcp").mid, r.target,
				ratio(r.rounds, "rate", "tcp", "unix").mid,
				ratio(r.rounds, "busy_us", "smc", "unix").mid, ratio(r.rounds, "busy_us", "smc", "tcp").mid)
		}
	}
	const speedHead = "| workload | connections | SMC-D to AF_UNIX | SMC-D to TCP | at least | TCP to AF_UNIX | " +
		"processor time, to AF_UNIX | to TCP |\n|---|---|---|---|---|---|---|---|\n"
	const memoryHead = "| idle connection | new | after a transaction |\n|---|---|---|\n"
	return speedHead + speed.String() + "\n" + memoryHead + memory.String()
}

func TestTurns(t *testing.T) {
	begun := map[string]int{}
	for i := range 6 {
		order := turns(i)
		begun[order[0]]++
		slices.Sort(order)
		if !slices.Equal(order, []string{"smc", "tcp", "unix"}) {
			t.Errorf("round %d has %v", i, order)
		}
	}
	for _, family := range families {
		if begun[family] != 2 {
			t.Errorf("%s begins %d of 6 rounds", family, begun[family])
		}
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   spread
	}{
		{[]float64{3}, spread{3, 3, 3}},
		{[]float64{5, 1, 4, 2, 3}, spread{2, 3, 4}},
		{[]float64{9, 1, 1, 1, 1, 1, 1, 1}, spread{1, 1, 1}},
	} {
		if got := spreadOf(c.values); got != c.want {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

// TestTable checks the table for rounds with different machine speeds but equal ratios between
// families.
func TestTable(t *testing.T) {
	var rr, idle []round
	for _, speed := range []float64{1, 10, 3} {
		rr = append(rr, round{
			"unix": {"rate": 100 * speed, "busy_us": 8 / speed},
			"tcp":  {"rate": 50 * speed, "busy_us": 16 / speed},
			"smc":  {"rate": 110 * speed, "busy_us": 4 / speed},
		})
		idle = append(idle, round{
			"unix": {"connected_kib": 2.5, "used_kib": 2.6}, "tcp": {"connected_kib": 6, "used_kib": 6.1},
			"smc": {"connected_kib": 30 + speed, "used_kib": 31 + speed},
		})
	}
	got := table([]result{{workload{"idle", 1000, "40 KiB"}, idle}, {workload{"rr", 10, "1.0"}, rr}, {workload{"rr", 50, "1.0"}, nil}})
	for _, want := range []string{
		"\n| rr | 10 | 1.10 (1.10 to 1.10) | 2.20 | 1.0 | 0.50 | 0.50 | 0.25 |\n",
		"\n| unix | 2.5 KiB | 2.6 KiB |\n| tcp | 6.0 KiB | 6.1 KiB |\n| smc | 33.0 KiB | 34.0 KiB |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "| 50 |") {
		t.Errorf("a workload without rounds is in\n%s", got)
	}
}
