// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Full reports whether slow tests shall run: SMCKIT_FULL, which make test-full sets.
func Full() bool { return os.Getenv("SMCKIT_FULL") != "" }

// Parts are the parts that a package runs in a guest, one after another: all, or only those of SMCKIT_PART, to look for a fault. Blanks
// separate them.
func Parts(all ...string) []string {
	if only := strings.Fields(os.Getenv("SMCKIT_PART")); len(only) > 0 {
		return only
	}
	return all
}

// Length returns the flag of tests inside of a guest that limits how long they may take.
type Length string

const (
	LengthShort Length = "short"
	LengthFull  Length = "full"
)

// FewSeries lists the kernel series for tests of behaviour that hardly differs between kernels: the newest alone, or, in
// full runs and if $SMCKIT_KERNELS is set, those of TestSeries().
func FewSeries() []string {
	kernels := TestSeries()
	if !Full() && os.Getenv("SMCKIT_KERNELS") == "" {
		return kernels[len(kernels)-1:]
	}
	return kernels
}

// EndSeries lists the kernel series for tests of behaviour that changes from one series to the next: the oldest and the
// newest, or, in full runs and if $SMCKIT_KERNELS is set, those of TestSeries().
func EndSeries() []string {
	kernels := TestSeries()
	if !Full() && os.Getenv("SMCKIT_KERNELS") == "" {
		return []string{kernels[0], kernels[len(kernels)-1]}
	}
	return kernels
}

// EachKernel runs a test of our module that has two lengths on the kernels of FewSeries(). At full length it takes long
// enough on the newest.
func EachKernel(t *testing.T, run func(t *testing.T, kernel string, length Length)) {
	t.Helper()
	Need(t)
	kernels := FewSeries()
	newest := kernels[len(kernels)-1]
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

// StartInside boots a guest for tests that run inside of it, with our commands and our module. The file marker makes these
// tests run at all, and contains how long they may take.
func StartInside(t *testing.T, o Options, marker string, length Length) *Test {
	t.Helper()
	programs, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o.Programs = []string{programs}
	lt := Start(t, o)
	if err := lt.LoadSMC(t.Context(), ModuleOurs); err != nil {
		t.Fatal(err)
	}
	lt.Must("a", fmt.Sprintf("printf %s >%s; ip link set lo up", length, marker))
	return lt
}
