// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// eachKernel runs a test with our module on the newest kernel, and in full runs on each.
func eachKernel(t *testing.T, run func(t *testing.T, kernel string)) {
	t.Helper()
	lab.Need(t)
	for _, kernel := range lab.FewSeries() {
		t.Run(kernel, func(t *testing.T) { run(t, kernel) })
	}
}

// repetitions returns how often a long test repeats something: n times on the newest kernel, and a tenth of that on others.
func repetitions(kernel string, n int) int {
	if kernel == lab.Newest() {
		return n
	}
	return max(1, n/10)
}
