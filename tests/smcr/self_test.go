// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"testing"

	"github.com/smckit/smckit/tests/lab"
)

// TestSelf has guests reach themselves by SMC-R, and does to these connections what tests/smcd does to those of SMC-D.
func TestSelf(t *testing.T) {
	lab.EachKernel(t, self)
}

func self(t *testing.T, kernel string, length lab.Length) {
	lt := lab.StartInside(t, lab.Options{
		Kernel: kernel, CPUs: 2, Memory: 2048,
		KernelArgs: "slab_nomerge",
	}, "/run/smckit-smcd", length)
	if err := lt.SetUpSelf(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", "echo "+lab.SelfAddr+" >/run/smckit-here; "+
		"sysctl -qw net.ipv4.tcp_max_tw_buckets=100 net.ipv4.ip_local_port_range='15000 60999'")
	parts := []string{"Sizes", "Kill$", "Failing"}
	if length == lab.LengthFull {
		parts = append(parts, "MixedEach", "Chunks", "Mixed$|Crowd", "ScaleCycles")
	}
	for _, part := range lab.Parts(parts...) {
		lt.GoTest(t, "a", "github.com/smckit/smckit/tests/smcd/inside", "^Test("+part+")")
	}
	unloads(t, lt, "a")
}
