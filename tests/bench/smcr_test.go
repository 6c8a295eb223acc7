// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkSMCR compares SMC-R of our module with that of the stock module, and both with TCP. Each
// runs between two hosts with one processor, soft-RoCE and the same kernel. One iteration is a
// round with one turn for each, while the hosts of the others are idle. Figures are medians of the
// rounds' ratios. Afterwards, one more run of each counts packets, work requests and completions,
// with TCP's packets for comparison.
func BenchmarkSMCR(b *testing.B) {
	field := newField(b)
	var results []netResult
	for _, w := range netWorkloads {
		b.Run(w.String(), func(b *testing.B) {
			r := netResult{netWorkload: w, counts: map[string]counts{}}
			report := watchHost(b)
			for b.Loop() {
				r.rounds = append(r.rounds, field.round(b, w, len(r.rounds)))
			}
			report()
			for _, who := range contenders {
				r.counts[who] = field.count(b, w, who)
			}
			r.publish(b)
			results = append(results, r)
		})
	}
	fmt.Printf("\n%s\n", netTable(results))
}

// contenders lists the contenders in the order of the first round.
var contenders = []string{"ours", "stock", "tcp"}

// netWorkload is a job between two hosts.
type netWorkload struct {
	job                            string
	request, response, connections int
	target                         string // the goal for ours relative to stock, as the table prints it
}

var netWorkloads = netMix()

func netMix() (all []netWorkload) {
	for _, size := range [][2]int{{200, 1000}, {1, 1}, {1 << 10, 1 << 10}, {16 << 10, 16 << 10}, {64 << 10, 64 << 10}} {
		for _, n := range []int{1, 10, 50} {
			all = append(all, netWorkload{"rr", size[0], size[1], n, "1.25"})
		}
	}
	return append(all,
		netWorkload{"rr", 200, 1000, 250, "-"},
		netWorkload{job: "stream", connections: 1, target: "1.3"},
		netWorkload{job: "stream", connections: 10, target: "1.3"},
		netWorkload{job: "stream", connections: 50, target: "-"},
		netWorkload{job: "stream", connections: 250, target: "-"},
		netWorkload{job: "connect", connections: 1, target: "2"})
}

func (w netWorkload) String() string {
	name := w.job
	if w.job == "rr" {
		name += fmt.Sprintf("-%dx%d", w.request, w.response)
	}
	return name + "/" + strconv.Itoa(w.connections)
}

// args returns the arguments of the load generator, at both ends.
func (w netWorkload) args(family string) string {
	args := fmt.Sprintf(" --family %s --job %s --connections %d", family, w.job, w.connections)
	if w.job == "rr" {
		args += fmt.Sprintf(" --request %d --response %d", w.request, w.response)
	}
	return args
}

// field contains the hosts: two with our module, and two with the stock module.
type field struct{ ours, stock *lab.Test }

func newField(b *testing.B) *field {
	b.Helper()
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	program := compileLoad(b)
	start := func(whose lab.Module) *lab.Test {
		lt := lab.Start(b, lab.Options{Kernel: "6.12", Hosts: 2, Programs: []string{dir}})
		if err := lt.SetUpSMC(b.Context(), whose); err != nil {
			b.Fatal(err)
		}
		for _, h := range lt.Hosts {
			// Count completions by the function that reports them.
			lt.Must(h.Name, "sysctl -qw net.ipv4.tcp_max_tw_buckets=1000000; echo p:completed rxe_cq_post >/sys/kernel/tracing/kprobe_events")
			install(b, h, program)
		}
		return lt
	}
	return &field{ours: start(lab.ModuleOurs), stock: start(lab.ModuleStock)}
}

// hosts returns the hosts of a contender and the family of its sockets.
func (f *field) hosts(who string) (lt *lab.Test, family string) {
	switch who {
	case "stock":
		return f.stock, "smc"
	case "tcp":
		return f.ours, "tcp"
	}
	return f.ours, "smc"
}

func (f *field) round(b *testing.B, w netWorkload, n int) round {
	b.Helper()
	r := round{}
	for i := range contenders {
		who := contenders[(i+n)%len(contenders)]
		r[who] = f.run(b, w, who)
	}
	return r
}

// run runs the load generator between a contender's hosts.
func (f *field) run(b *testing.B, w netWorkload, who string) outcome {
	b.Helper()
	lt, family := f.hosts(who)
	return runBetween(b, lt, w, family, lt.CountersR)
}

// runBetween runs the load generator between two hosts, and checks that connections of AF_SMC have the transport that is counted.
func runBetween(b *testing.B, lt *lab.Test, w netWorkload, family string, counters func(host string) lab.Counters) outcome {
	b.Helper()
	const at = "10.0.0.2:5000"
	before := counters("a")
	lt.Must("b", "while pidof -q load; do sleep 0.05; done; "+
		loadInside+w.args(family)+" --listen "+at+" </dev/null >/dev/null 2>&1")
	o, err := parseOutcome(lt.Must("a", loadInside+w.args(family)+" --warmup 0.5 --seconds 2.5 --connect "+at), ofTraffic)
	if err != nil {
		b.Fatal(err)
	}
	after := counters("a")
	fell := after.Fallback.Client.Total - before.Fallback.Client.Total
	made := after.Connections.ClientV2 - before.Connections.ClientV2
	if family == "smc" && (fell > 0 || made < w.connections) {
		b.Fatalf("%d connections are SMC, %d fell back: %+v", made, fell, after.Fallback)
	}
	return o
}

// count makes one run without measuring time, and counts packets, work requests and completions.
func (f *field) count(b *testing.B, w netWorkload, who string) counts {
	b.Helper()
	lt, _ := f.hosts(who)
	var seen traffic
	probe(lt, 1)
	before := probeHits(b, lt)
	lt.Wires[0].Drop(func(_ int, frame []byte) bool { seen.add(frame); return false })
	o := f.run(b, w, who)
	lt.Wires[0].Drop(nil)
	done := probeHits(b, lt) - before
	probe(lt, 0)
	total := o["total"]
	return counts{
		packets: float64(seen.packets) / total, acks: float64(seen.acks) / total,
		writes: float64(seen.writes) / total, sends: float64(seen.sends) / total,
		completions: done / total,
	}
}

// probe switches the kprobe of each host on or off.
func probe(lt *lab.Test, on int) {
	for _, h := range lt.Hosts {
		lt.Must(h.Name, fmt.Sprintf("echo %d >/sys/kernel/tracing/events/kprobes/enable", on))
	}
}

// probeHits returns how often the kprobes of all hosts were hit.
func probeHits(b *testing.B, lt *lab.Test) (sum float64) {
	b.Helper()
	for _, h := range lt.Hosts {
		var name string
		var hits float64
		if _, err := fmt.Sscan(lt.Must(h.Name, "cat /sys/kernel/tracing/kprobe_profile"), &name, &hits); err != nil {
			b.Fatal(err)
		}
		sum += hits
	}
	return sum
}

// install copies the load generator to a guest.
func install(b *testing.B, h *lab.Host, program string) {
	b.Helper()
	data, err := os.ReadFile(program)
	if err != nil {
		b.Fatal(err)
	}
	if err := h.WriteFile(b.Context(), loadInside, data, 0o755); err != nil {
		b.Fatal(err)
	}
}

// netResult contains the rounds and the counts of a workload.
type netResult struct {
	netWorkload
	rounds []round
	counts map[string]counts
}

func (r netResult) publish(b *testing.B) {
	for _, pair := range [][2]string{{"ours", "stock"}, {"ours", "tcp"}, {"stock", "tcp"}} {
		name := pair[0] + "/" + pair[1]
		b.ReportMetric(ratio(r.rounds, "rate", pair[0], pair[1]).mid, name)
		b.ReportMetric(ratio(r.rounds, "busy_us", pair[0], pair[1]).mid, name+"-cpu")
	}
	for _, who := range contenders {
		b.ReportMetric(figure(r.rounds, "rate", who).mid, who+"/s")
		b.ReportMetric(r.counts[who].packets, who+"-packets")
	}
	for _, who := range contenders[:2] {
		b.ReportMetric(r.counts[who].writes+r.counts[who].sends, who+"-work-requests")
		b.ReportMetric(r.counts[who].completions, who+"-completions")
	}
}
