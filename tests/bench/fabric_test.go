// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// fabricWorkloads are those of the study of ISM pass-through: rr1c-200x1000 and str-readx30k. A stream here goes from the client to the
// server, which makes no difference between two equal guests. The goals are for rates, relative to TCP.
var fabricWorkloads = []netWorkload{
	{"rr", 200, 1000, 1, "-"},
	{"rr", 200, 1000, 10, "-"},
	{"rr", 200, 1000, 50, "-"},
	{"rr", 200, 1000, 250, "6"},
	{job: "stream", connections: 1, target: "4"},
	{job: "stream", connections: 10, target: "4"},
	{job: "stream", connections: 50, target: "4"},
	{job: "stream", connections: 250, target: "4"},
}

// BenchmarkFabric compares SMC-D between two guests that share memory with TCP between the same guests, whose network is a cable between
// virtio devices. One iteration is a round with one turn for each. Doorbells are the interrupts in both guests for each transaction or
// megabyte.
func BenchmarkFabric(b *testing.B) {
	lt := fabricHosts(b, 2, false)
	var results []fabricResult
	for _, w := range fabricWorkloads {
		b.Run(w.String(), func(b *testing.B) {
			r := fabricResult{netWorkload: w}
			report := watchHost(b)
			for b.Loop() {
				turns, rung := round{}, 0.0
				for i := range 2 {
					family := []string{"smc", "tcp"}[(i+len(r.rounds))%2]
					before := doorbells(b, lt)
					turns[family] = runBetween(b, lt, w, family, lt.Counters)
					if family == "smc" {
						rung = (doorbells(b, lt) - before) / turns[family]["total"]
					}
				}
				turns["smc"]["doorbells"] = rung
				r.rounds = append(r.rounds, turns)
			}
			report()
			b.ReportMetric(ratio(r.rounds, "rate", "smc", "tcp").mid, "smc/tcp")
			b.ReportMetric(ratio(r.rounds, "busy_us", "smc", "tcp").mid, "smc/tcp-cpu")
			b.ReportMetric(figure(r.rounds, "doorbells", "smc").mid, "doorbells")
			results = append(results, r)
		})
	}
	fmt.Printf("\n%s\n", fabricTable(results))
}

// fabricResult has the rounds of a workload.
type fabricResult struct {
	netWorkload
	rounds []round
}

// fabricTable returns a Markdown table.
func fabricTable(results []fabricResult) string {
	var t strings.Builder
	t.WriteString("| workload | connections | SMC-D to TCP | at least | processor time, to TCP | doorbells |\n|---|---|---|---|---|---|\n")
	for _, r := range results {
		if len(r.rounds) == 0 {
			continue
		}
		rate := ratio(r.rounds, "rate", "smc", "tcp")
		fmt.Fprintf(&t, "| %s | %.2f (%.2f to %.2f) | %s | %.2f | %.3f |\n", strings.Replace(r.String(), "/", " | ", 1), rate.mid, rate.low, rate.high,
			r.target, ratio(r.rounds, "busy_us", "smc", "tcp").mid, figure(r.rounds, "doorbells", "smc").mid)
	}
	return t.String()
}

// fabricHosts boots two guests that share memory and have no other device for SMC. If counted is set, their clocks count instructions.
func fabricHosts(b *testing.B, cpus int, counted bool) *lab.Test {
	b.Helper()
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	program := compileLoad(b)
	lt := lab.Start(b, lab.Options{
		Kernel: lab.Newest(), Hosts: 2, CPUs: cpus, Memory: 1024, CountedTime: counted, Programs: []string{dir}, KernelArgs: "smc.smcr=0",
		Fabric: lab.Fabric{Size: 256 << 20},
	})
	if err := lt.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	for i, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf(`ip link set lo up; ip link set eth0 up; ip addr add 10.0.0.%d/24 dev eth0
smcr ueid add LAB
sysctl -qw net.ipv4.tcp_max_tw_buckets=1000000`, i+1))
		install(b, h, program)
	}
	return lt
}

// doorbells returns how many signals have interrupted both guests.
func doorbells(b *testing.B, lt *lab.Test) (sum float64) {
	b.Helper()
	for _, h := range lt.Hosts {
		var n float64
		out := lt.Must(h.Name, `awk '/smc-signal/ { for (i = 2; $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts`)
		if _, err := fmt.Sscan(out, &n); err != nil {
			b.Fatalf("%v: %q", err, out)
		}
		sum += n
	}
	return sum
}

// TestFabricTable checks the table for rounds with different machine speeds but equal ratios.
func TestFabricTable(t *testing.T) {
	r := fabricResult{netWorkload: netWorkload{"rr", 200, 1000, 250, "6"}}
	for _, speed := range []float64{1, 7, 3} {
		r.rounds = append(r.rounds, round{
			"smc": {"rate": 30 * speed, "busy_us": 2 / speed, "doorbells": 0.25},
			"tcp": {"rate": 10 * speed, "busy_us": 4 / speed},
		})
	}
	got := fabricTable([]fabricResult{r, {}})
	if line := "\n| rr-200x1000 | 250 | 3.00 (3.00 to 3.00) | 6 | 0.50 | 0.250 |\n"; !strings.HasSuffix(got, line) {
		t.Errorf("no %q at the end of:\n%s", line, got)
	}
}
