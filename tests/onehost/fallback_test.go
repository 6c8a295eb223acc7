// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestFallback boots one guest for each kernel, whose SMC-D is that of smc_null.ko: all of the handshake happens, and then each
// connection is TCP. It runs the tests of sockets, namespaces, devices and modules that do not depend on the transport of the
// data. In the end the modules can be unloaded.
func TestFallback(t *testing.T) {
	lab.EachKernel(t, fallback)
}

func fallback(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1024,
		// smc_null.ko takes the place of our SMC-D, and /proc/slabinfo counts our objects.
		KernelArgs: "smc.smcd=0 smc.smcr=0 slab_nomerge",
	}, "/run/smckit-null", length)
	lt.Must("a", "modprobe -aq tun veth || :")
	parts := []string{
		"HeldListeners|HeldConnects", "Module", "NamespacesLeftOpen|NamespacesHidden|NamespacesTable|RaceListenerCloses|RaceAddresses", "RaceOperations", "Failing",
	}
	if length == lab.LengthFull {
		// One deadline is too short for all rounds of races.
		parts = append(parts, "RaceOperations", "ScaleOpen|ScaleResets", "ScaleCycles")
	}
	run(t, lt, parts)
	if r := lt.Run("a", "rmmod", "smc_null", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
}
