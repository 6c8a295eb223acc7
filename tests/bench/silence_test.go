// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bench

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// BenchmarkSilence measures the time in which 100 hosts make their first SMC-R connections with our
// module, while other hosts stop answering at each step of their handshakes, and while there are no
// such hosts. The figure is the median of the ratios of the times: 1 means no delay. The hosts are
// programs of one guest, as in tests/badpeer.
func BenchmarkSilence(b *testing.B) {
	lab.Need(b)
	dir, err := lab.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	lt := lab.Start(b, lab.Options{Kernel: lab.Newest(), CPUs: 2, Memory: 1024, KernelArgs: "smc.smcd=0 slab_nomerge", Programs: []string{dir}})
	if err := lt.LoadSMC(b.Context(), lab.ModuleOurs); err != nil {
		b.Fatal(err)
	}
	lt.Must("a", "modprobe -aq tun rdma_rxe; touch /run/smckit-roce; ip link set lo up")
	report := watchHost(b)
	out := lt.GoBench(b, "a", "github.com/smckit/smckit/tests/badpeer", "BenchmarkSilence", max(3, b.N))
	report()
	slowed := regexp.MustCompile(`([0-9.]+) x-quiet`).FindStringSubmatch(out)
	if slowed == nil {
		b.Fatalf("no figure: %s", out)
	}
	ratio, err := strconv.ParseFloat(slowed[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(ratio, "x-quiet")
	b.ReportMetric(0, "ns/op")
}
