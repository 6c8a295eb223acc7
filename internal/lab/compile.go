// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// CompileC compiles the C sources of a folder into a static program, and returns its path. A warning fails the test. Without a
// C compiler it skips the test, or fails it where tests run guests.
func CompileC(t testing.TB, folder string, flags ...string) (program string) {
	t.Helper()
	need.LabPrograms(t, "cc")
	sources, err := filepath.Glob(filepath.Join(folder, "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatalf("no C sources in %s: %v", folder, err)
	}
	program = filepath.Join(t.TempDir(), "program")
	args := append([]string{"-static", "-Wall", "-Wextra", "-Werror", "-pthread", "-o", program}, flags...)
	if out, err := exec.CommandContext(t.Context(), "cc", append(args, sources...)...).CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return program
}
