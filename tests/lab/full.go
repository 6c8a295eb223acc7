// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os"
	"testing"
)

// Full says whether there is time for what takes long: SMCKIT_FULL, which make test-full sets.
func Full() bool { return os.Getenv("SMCKIT_FULL") != "" }

// Length is how long tests inside of a guest may take, as they are told.
type Length string

const (
	LengthShort Length = "short"
	LengthFull  Length = "full"
)

// EachKernel runs a test of our module that has two lengths: on the newest kernel alone, or, in full runs and if
// $SMCKIT_KERNELS says so, on all. At full length it takes long enough on the newest.
func EachKernel(t *testing.T, run func(t *testing.T, kernel string, length Length)) {
	t.Helper()
	Need(t)
	kernels := TestSeries()
	newest := kernels[len(kernels)-1]
	if !Full() && os.Getenv("SMCKIT_KERNELS") == "" {
		kernels = []string{newest}
	}
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) {
			if err := CheckModule(t.Context(), kernel, ModuleOurs, nil); err != nil {
				t.Fatal(err)
			}
			length := LengthShort
			if Full() && kernel == newest {
				length = LengthFull
			}
			run(t, kernel, length)
		})
	}
}
