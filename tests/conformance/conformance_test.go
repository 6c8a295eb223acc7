// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// guest is a booted guest with the suite.
type guest struct {
	*lab.Test
	binary string   // on this machine
	more   []string // options of all runs
	as     []string // a command that runs them as another user
	only   string   // a pattern of checks, if not all run
}

const inside = "/run/conformance"

// boot starts a guest that has the loopback interface only.
func boot(t *testing.T, kernel string) *guest {
	t.Helper()
	return bootWith(t, kernel, lab.Fabric{})
}

// bootWith starts one that is a member of a fabric.
func bootWith(t *testing.T, kernel string, fabric lab.Fabric) *guest {
	t.Helper()
	programs, err := lab.Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := &guest{binary: program(t)}
	g.Test = lab.Start(t, lab.Options{Kernel: kernel, CPUs: 2, Memory: 1024, Programs: []string{programs}, Fabric: fabric})
	data, err := os.ReadFile(g.binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Host("a").WriteFile(t.Context(), inside, data, 0o755); err != nil {
		t.Fatal(err)
	}
	// Beyond this limit, sockets skip TIME-WAIT, which some checks expect.
	g.Must("a", "ip link set lo up && sysctl -qw net.ipv4.tcp_max_tw_buckets=100000")
	return g
}

// run runs the suite in the guest. It ends the test if a verdict is missing, because the guest may have died.
func (g *guest) run(t *testing.T, r run, timeout time.Duration) (names []string, verdicts map[string]verdict) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), lab.Scale(240*time.Second))
	defer cancel()
	var chosen []string
	if g.only != "" {
		chosen = []string{"--only", g.only}
	}
	argv := slices.Concat(g.as, []string{inside}, r.args("--jobs", "8", "--timeout", strconv.Itoa(int(timeout.Seconds()))), g.more, chosen)
	result, err := g.Host("a").Run(ctx, lab.Cmd{Argv: argv})
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", r, err, result.Stdout, result.Stderr)
	}
	names = list(t, g.binary, r, chosen...)
	verdicts, err = parse(result.Stdout, names)
	if err != nil {
		t.Fatalf("%s: %v, exit status %d\n%s", r, err, result.Code, result.Stderr)
	}
	return names, verdicts
}

// reference runs the suite over TCP.
func (g *guest) reference(t *testing.T, modes ...mode) {
	for _, r := range runs(modes, tcpOnly...) {
		t.Run(r.String(), func(t *testing.T) {
			names, verdicts := g.run(t, r, lab.Scale(10*time.Second))
			report(t, names, verdicts)
		})
	}
}

// TestOurs checks that our module behaves like TCP.
func TestOurs(t *testing.T) {
	lab.Need(t)
	kernels := lab.EndSeries()
	for i, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			p := planFor(i == len(kernels)-1)
			g := boot(t, kernel)
			if len(p.bare) > 0 {
				t.Run("without module", func(t *testing.T) { g.reference(t, p.bare...) })
			}
			t.Run("ours", func(t *testing.T) { ours(t, g, p) })
		})
	}
}

// plan lists the runs of the suite on a kernel.
type plan struct {
	bare     []mode // over TCP, before our module is loaded, if at all
	fallback []run
	smcd     []run
	moved    []run // over SMC-D, as with hardware devices
	ruled    []run // over TCP sockets that a rule makes SMC-D; only in full runs
}

// planFor returns the plan for a kernel. Except in full runs, it leaves out combinations of kernels and domains for which our
// module does not differ, and TCP without our module, which tests the suite and the kernel: TestReference has the suite. The newest
// kernel gets most combinations.
func planFor(newest bool) plan {
	if lab.Full() {
		return plan{tcpModes, runs(allModes, domains...), runs(tcpModes, domains...), runs(tcpModes, "smc", "ipproto6"), runs(tcpModes, tcpOnly...)}
	}
	p := plan{
		fallback: append(runs([]mode{asServer, toTCP}, "smc"), run{"ipproto6", fromTCP}),
		smcd:     runs(tcpModes, "smc"),
	}
	if newest {
		p.fallback = append(runs(allModes, "smc"), run{"ipproto6", asServer})
		p.smcd = runs(tcpModes, "smc", "ipproto6")
	}
	return p
}

// ours loads our module and runs the suite over AF_SMC and IPPROTO_SMC, with connections that fall back and with SMC-D
// connections. It also checks that TCP still works.
func ours(t *testing.T, g *guest, p plan) {
	release := g.Host("a").Kernel.Release
	if _, err := os.Stat(filepath.Join("../../build/kernel", release, "smc.ko")); err != nil {
		t.Skipf("no module of ours for kernel %s: run 'make modules'", release)
	}
	if err := g.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	t.Run("fallback", func(t *testing.T) { overTCP(t, g, p.fallback) })
	t.Run("smcd", func(t *testing.T) { overSMCD(t, g, p.smcd, differences) })
	t.Run("nobody", func(t *testing.T) { overSMCDAsNobody(t, g) })
	t.Run("rule", func(t *testing.T) { underRule(t, g, p.ruled) })
	g.reference(t, asServer)
	if len(p.moved) > 0 {
		g.Must("a", "rmmod smc_diag smc && modprobe smc loopback_move=1 && modprobe smc_diag")
		t.Run("moved", func(t *testing.T) { overSMCD(t, g, p.moved, movedDifferences()) })
	}
}

// stockKernel is the kernel whose stock module TestStock examines.
const stockKernel = "6.12"

// TestStock compares the differences of the distribution's module from TCP with the recorded ones. It runs only on request,
// because many checks hang, which takes a quarter of an hour, and none of them tests our code.
func TestStock(t *testing.T) {
	lab.Need(t)
	if os.Getenv("SMCKIT_STOCK") == "" {
		t.Skip("'make test-stock' tests the stock module")
	}
	book := load(t)
	g := boot(t, stockKernel)
	if err := g.LoadSMC(t.Context(), lab.ModuleStock); err != nil {
		t.Fatal(err)
	}
	g.reference(t, asClient)
	for _, r := range runs(allModes, domains...) {
		t.Run(r.String(), func(t *testing.T) {
			// A check that hangs here never ends, so a shorter deadline saves minutes.
			names, verdicts := g.run(t, r, lab.Scale(5*time.Second))
			if *update {
				book.learn(r, names, verdicts)
			} else {
				book.compare(t, r, names, verdicts)
			}
		})
	}
	if *update && !t.Failed() {
		book.save(t)
	}
}
