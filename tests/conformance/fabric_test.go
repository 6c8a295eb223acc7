// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// TestOverFabric runs the suite with SMC-D connections from a guest to itself through memory that guests share: the guest has two devices,
// so it is two members, and connections use one of them at each end. The expected failures are those of hardware devices.
func TestOverFabric(t *testing.T) {
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) { overFabric(t, kernel) })
	}
}

func overFabric(t *testing.T, kernel string) {
	g := bootWith(t, kernel, lab.Fabric{Size: 64 << 20, Devices: 2})
	if err := g.LoadSMC(t.Context(), lab.ModuleOurs); err != nil {
		t.Fatal(err)
	}
	g.Must("a", "sysctl -qw net.smc.loopback=0; smcr ueid add LAB")
	all := runs([]mode{asServer}, "smc")
	if lab.Full() {
		all = runs(tcpModes, "smc", "ipproto6")
	}
	overDevice(t, g, all, lab.Scale(10*time.Second), g.Counters)
	g.Must("a", "rmmod smc_diag smc")
}
