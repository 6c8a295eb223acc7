// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestSMCRWithItself lets guests connect to themselves by SMC-R, and runs the tests of TestSMCD on these connections.
func TestSMCRWithItself(t *testing.T) {
	if !lab.Full() {
		t.Skip("takes minutes: SMCKIT_FULL=1")
	}
	lab.EachKernel(t, smcrWithItself)
}

func smcrWithItself(t *testing.T, kernel string, length lab.Length) {
	lt := start(t, kernel, length)
	if err := lt.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "echo "+lab.SelfAddr+" >/run/smckit-here")
	parts := []string{"Sizes", "Kill$", "AcceptedTurnedClient|ListenActive|OptionsRefused", "HeldGroup", "Memory", "Failing", "NothingReserved"}
	if length == lab.LengthFull {
		parts = append(parts, "MixedEach", "Chunks", "Mixed$|ManyConnections", "ScaleCycles")
	}
	run(t, lt, parts)
	unloads(t, lt)
}
