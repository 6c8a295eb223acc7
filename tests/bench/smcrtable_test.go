// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"strings"
	"testing"
)

// netTable returns a Markdown table of the speed of SMC-R, and of its costs.
func netTable(results []netResult) string {
	var speed, takes strings.Builder
	for _, r := range results {
		if len(r.rounds) == 0 {
			continue
		}
		rate := ratio(r.rounds, "rate", "ours", "stock")
		name := strings.Replace(r.String(), "/", " | ", 1)
		fmt.Fprintf(&speed, "| %s | %.2f (%.2f to %.2f) | %s | %.2f | %.2f | %.2f |\n", name, rate.mid, rate.low, rate.high, r.target,
			ratio(r.rounds, "rate", "ours", "tcp").mid, ratio(r.rounds, "rate", "stock", "tcp").mid,
			ratio(r.rounds, "busy_us", "ours", "stock").mid)
		ours, stock := r.counts["ours"], r.counts["stock"]
		fmt.Fprintf(&takes, "| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", name, ours.packets, stock.packets,
			r.counts["tcp"].packets, ours.writes+ours.sends, stock.writes+stock.sends, ours.completions, stock.completions)
	}
	return "| workload | connections | ours to stock | at least | ours to TCP | stock to TCP | processor time, ours to stock |\n" +
		"|---|---|---|---|---|---|---|\n" + speed.String() + "\n" +
		"| workload | connections | packets, ours | stock | TCP | work requests, ours | stock | completions, ours | stock |\n" +
		"|---|---|---|---|---|---|---|---|---|\n" + takes.String()
}

// TestNetTable checks the table for rounds with different machine speeds but equal ratios.
func TestNetTable(t *testing.T) {
	r := netResult{netWorkload: netWorkload{"rr", 200, 1000, 10, "1.25"}, counts: map[string]counts{
		"ours":  {packets: 8, writes: 2, sends: 2, completions: 3},
		"stock": {packets: 8.5, writes: 2, sends: 2.5, completions: 5},
		"tcp":   {packets: 2},
	}}
	for _, speed := range []float64{1, 7, 3} {
		r.rounds = append(r.rounds, round{
			"ours":  {"rate": 30 * speed, "busy_us": 2 / speed},
			"stock": {"rate": 20 * speed, "busy_us": 4 / speed},
			"tcp":   {"rate": 60 * speed, "busy_us": 1 / speed},
		})
	}
	got := netTable([]netResult{r, {}})
	for _, line := range []string{
		"\n| rr-200x1000 | 10 | 1.50 (1.50 to 1.50) | 1.25 | 0.50 | 0.33 | 0.50 |\n",
		"\n| rr-200x1000 | 10 | 8.00 | 8.50 | 2.00 | 4.00 | 4.50 | 3.00 | 5.00 |\n",
	} {
		if !strings.Contains(got, line) {
			t.Errorf("no %q in:\n%s", line, got)
		}
	}
}
