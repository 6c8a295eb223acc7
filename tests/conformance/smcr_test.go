// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// TestOverSMCR runs the suite with SMC-R connections from a guest to itself. The expected failures are those of SMC-D with
// hardware devices.
func TestOverSMCR(t *testing.T) {
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) { overSMCR(t, kernel) })
	}
}

func overSMCR(t *testing.T, kernel string) {
	g := boot(t, kernel)
	// Emulated RDMA is slow, and some checks transfer much data.
	g.more = []string{"--address", lab.SelfAddr, "--jobs", "4"}
	if err := g.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	if err := g.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := runs([]mode{asServer}, "smc")
	if lab.Full() {
		all = runs(tcpModes, "smc", "ipproto")
	}
	overDevice(t, g, all, lab.Scale(15*time.Second), g.CountersR)
}

// overDevice runs the suite with connections over a device that moves data as hardware does, each check with a timeout.
func overDevice(t *testing.T, g *guest, all []run, timeout time.Duration, counters func(host string) lab.Counters) {
	for _, r := range all {
		t.Run(r.String(), func(t *testing.T) {
			before := counters("a")
			names, verdicts := g.run(t, r, timeout)
			differ(t, names, verdicts, movedDifferences())
			checkCounters(t, r, len(names), before, counters("a"))
		})
	}
}

// TestDifferencesR checks that the listed checks exist, and that their differences are documented.
func TestDifferencesR(t *testing.T) { documented(t, movedDifferences(), "../../docs/smcr.md") }

// documented checks that listed checks exist, and that a page names them.
func documented(t *testing.T, listed map[string]string, page string) {
	t.Helper()
	names := list(t, program(t), run{"smc", asClient})
	doc, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for name := range listed {
		if !slices.Contains(names, name) {
			t.Errorf("there is no check %s", name)
		}
		if !strings.Contains(string(doc), name) {
			t.Errorf("%s does not name %s", page, name)
		}
	}
}
