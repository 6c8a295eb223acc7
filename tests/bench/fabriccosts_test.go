// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// instructionsPerTick is the number of instructions in a unit of /proc/stat, which is 10 ms, with a clock that counts time: 2 ns for each.
const instructionsPerTick = 5_000_000

// costs is what was counted in guests, or, divided by their number, for each transaction.
type costs struct {
	user, kernel, softirq float64 // instructions
	exits                 float64 // kicks of virtio's queues and doorbells: what the host of a guest must handle
}

func (c costs) instructions() float64 { return c.user + c.kernel + c.softirq }

func (c costs) minus(o costs) costs {
	return costs{c.user - o.user, c.kernel - o.kernel, c.softirq - o.softirq, c.exits - o.exits}
}

func (c costs) over(n float64) costs {
	return costs{c.user / n, c.kernel / n, c.softirq / n, c.exits / n}
}

// BenchmarkFabricCosts counts what a transaction costs two guests that share memory, by SMC-D and by TCP, because rates under emulation
// have no costs of exits, and everything but copying is slow. Each guest has one processor, because its clock counts the instructions
// of all. AF_UNIX, with both ends in one guest, shows what the same system calls and threads cost with next to nothing below them. Kicks are
// counted by a probe, in a run of its own. The kernel samples by ticks who runs, so it needs loads that leave little idle time.
func BenchmarkFabricCosts(b *testing.B) {
	lt := fabricHosts(b, 1, true)
	for _, h := range lt.Hosts {
		lt.Must(h.Name, "echo p:kicked vp_notify >/sys/kernel/tracing/kprobe_events")
	}
	var rows []string
	for _, n := range []int{50, 250} {
		w := netWorkload{"rr", 200, 1000, n, "-"}
		b.Run(w.String(), func(b *testing.B) {
			found := map[string]costs{}
			for b.Loop() {
				for _, family := range families {
					found[family] = countCosts(b, lt, w, family)
				}
			}
			b.ReportMetric(found["smc"].instructions()/found["tcp"].instructions(), "smc/tcp-instructions")
			b.ReportMetric(found["unix"].instructions()/found["tcp"].instructions(), "unix/tcp-instructions")
			b.ReportMetric(found["smc"].exits, "smc-exits")
			b.ReportMetric(found["tcp"].exits, "tcp-exits")
			rows = append(rows, costRows(n, found)...)
		})
	}
	fmt.Printf("\n%s%s", "| connections | transport | instructions | in programs | in the kernel | in softirqs | exits |\n|---|---|---|---|---|---|---|\n",
		strings.Join(rows, ""))
}

// costRows returns the rows of a Markdown table: thousands of instructions, and exits.
func costRows(connections int, found map[string]costs) (rows []string) {
	for _, family := range []string{"tcp", "smc", "unix"} {
		c := found[family]
		rows = append(rows, fmt.Sprintf("| %d | %s | %.1f | %.1f | %.1f | %.1f | %.2f |\n", connections, family, c.instructions()/1e3, c.user/1e3,
			c.kernel/1e3, c.softirq/1e3, c.exits))
	}
	return rows
}

// countCosts returns what a transaction costs both guests.
func countCosts(b *testing.B, lt *lab.Test, w netWorkload, family string) costs {
	b.Helper()
	run := func(probes int) costs {
		probe(lt, probes)
		before := guestCosts(b, lt)
		var total float64
		if family == "unix" {
			o, err := parseOutcome(lt.Must("a", loadInside+w.args(family)+" --warmup 0.5 --seconds 2.5"), ofTraffic)
			if err != nil {
				b.Fatal(err)
			}
			total = o["total"]
		} else {
			total = runBetween(b, lt, w, family, lt.Counters)["total"]
		}
		return guestCosts(b, lt).minus(before).over(total)
	}
	c := run(0)
	c.exits = run(1).exits
	return c
}

// guestCosts returns what has been counted in both guests since they booted.
func guestCosts(b *testing.B, lt *lab.Test) (sum costs) {
	b.Helper()
	for _, h := range lt.Hosts {
		var user, nice, system, idle, iowait, irq, softirq float64
		out := lt.Must(h.Name, "head -n 1 /proc/stat")
		if _, err := fmt.Sscanf(out, "cpu %g %g %g %g %g %g %g", &user, &nice, &system, &idle, &iowait, &irq, &softirq); err != nil {
			b.Fatalf("%v: %q", err, out)
		}
		sum.user += (user + nice) * instructionsPerTick
		sum.kernel += (system + irq) * instructionsPerTick
		sum.softirq += softirq * instructionsPerTick
	}
	sum.exits = probeHits(b, lt) + doorbells(b, lt)
	return sum
}

// TestCostRows checks the rows of the table.
func TestCostRows(t *testing.T) {
	c := costs{1000, 2000, 500, 3}.minus(costs{exits: 1}).over(2)
	got := strings.Join(costRows(50, map[string]costs{"tcp": c}), "")
	if want := "| 50 | tcp | 1.8 | 0.5 | 1.0 | 0.2 | 1.00 |\n| 50 | smc | 0.0 |"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
