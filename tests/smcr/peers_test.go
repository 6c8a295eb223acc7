// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const (
	inside = "github.com/smckit/smckit/tests/smcr/inside"
	marker = "/run/smckit-smcr"
)

// TestPeers boots one guest for each kernel, in which the tests of inside run, whose peers lie, break rules and fall silent
// over soft-RoCE. That the modules can be unloaded at the end is their last word.
func TestPeers(t *testing.T) {
	lab.EachKernel(t, peers)
}

func peers(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 1024,
		// Nothing but SMC-R, and /proc/slabinfo counts our objects. Nothing is lost on the way, so buffers can be registered as
		// with hardware.
		KernelArgs: "smc.smcd=0 smc.rxe_in_turn=1 slab_nomerge",
	}, marker, length)
	lt.Must("a", "modprobe -aq tun rdma_rxe || :")
	// Each part has a deadline of its own. What waits for time-outs, or is about who comes first, is for full runs.
	parts := []string{
		"PeersWellBehaved|PeersOutOfSync|PeersOlder|PeersTested|PeersKeepalive|PeersAb", "PeersCDC", "PeersLLC", "PeersDelete", "PeersRDMA", "PeersImmediate", "PeersStalled",
		"PeersReceives|PeersQueues|PeersNumbers|PeersVectors|PeersFlap|PeersTrafficClass|PeersLimits",
	}
	if lab.Full() {
		parts = append(parts, "PeersLimit", "PeersVersion1", "PeersForming", "PeersCLC", "PeersSilent", "PeersForget", "PeersLose")
	}
	for _, part := range lab.Parts(parts...) {
		lt.GoTest(t, "a", inside, "^Test("+part+")")
	}
	if r := lt.Run("a", "rmmod", "smc_diag", "smc"); r.Code != 0 {
		t.Errorf("the modules cannot be unloaded: %+v", r)
	}
}
