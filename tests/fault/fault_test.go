// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package fault does to our module what nobody should: peers that break every rule of the handshake, namespaces and
// devices that go away at the worst moment, memory that runs out, thousands of connections. In the end nothing of it may
// be left.
package fault

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const (
	inside = "github.com/smckit/smckit/tests/fault/inside"
	marker = "/run/smckit-null"
)

// TestFault boots one guest for each kernel, in which the tests of inside run. That the modules can be unloaded at the end
// is their last word.
func TestFault(t *testing.T) {
	lab.EachKernel(t, in)
}

func in(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1024,
		// smc_null.ko takes the place of our SMC-D, and /proc/slabinfo counts our objects.
		KernelArgs: "smc.smcd=0 smc.smcr=0 slab_nomerge",
	}, marker, length)
	lt.Must("a", "modprobe -aq tun veth || :")
	// Each part has a deadline of its own.
	parts := []string{"Held", "Module", "Namespaces|Race[AL]", "RaceOperations", "Scale", "Failing"}
	if length == lab.LengthFull {
		parts = append(parts, "RaceOperations") // as many rounds as there are to be do not fit into one deadline
	}
	for _, part := range lab.Parts(parts...) {
		lt.GoTest(t, "a", inside, "^Test("+part+")")
	}
	if r := lt.Run("a", "rmmod", "smc_null", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
}
