// SPDX-License-Identifier: Apache-2.0

// Package need skips tests on machines that lack a program which the test runs.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Programs skips a test on a machine that lacks one of the programs.
func Programs(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			t.Skipf("needs %s: run tests/deps.sh", p)
		}
	}
}

// LabPrograms does the same, but fails the test where SMCKIT_LAB is set: make test has run tests/deps.sh before.
func LabPrograms(t testing.TB, programs ...string) {
	t.Helper()
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil && os.Getenv("SMCKIT_LAB") != "" {
			t.Fatalf("no %s: run tests/deps.sh", p)
		}
	}
	Programs(t, programs...)
}
