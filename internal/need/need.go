// SPDX-License-Identifier: Apache-2.0

// Package need skips tests on machines that lack what the test needs.
package need

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
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
		if _, err := exec.LookPath(p); err != nil && lab() {
			t.Fatalf("no %s: run tests/deps.sh", p)
		}
	}
	Programs(t, programs...)
}

// Compiler32 skips a test on a machine that cannot compile 32-bit programs, or fails it where SMCKIT_LAB is set. It returns two programs,
// which are linked to the C library dynamically and statically.
func Compiler32(t testing.TB) (programs []string) {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("32-bit programs are tested on x86-64")
	}
	dir := t.TempDir()
	for _, link := range []string{"-no-pie", "-static"} {
		program := filepath.Join(dir, "program"+link)
		cmd := exec.CommandContext(t.Context(), "cc", "-m32", link, "-x", "c", "-", "-o", program)
		cmd.Stdin = strings.NewReader("int main(void) { return 0; }\n")
		if out, err := cmd.CombinedOutput(); err != nil && lab() {
			t.Fatalf("cc -m32 %s: run tests/deps.sh: %v: %s", link, err, out)
		} else if err != nil {
			t.Skipf("needs a compiler and a C library for 32-bit programs: run tests/deps.sh: %v", err)
		}
		programs = append(programs, program)
	}
	return programs
}

// Bits32 does the same, and skips the test if the kernel of this machine does not run such programs.
func Bits32(t testing.TB) {
	t.Helper()
	for _, program := range Compiler32(t) {
		err := exec.CommandContext(t.Context(), program).Run()
		if errors.Is(err, syscall.ENOEXEC) {
			t.Skip("this kernel does not run 32-bit programs")
		}
		if err != nil {
			t.Fatalf("a 32-bit program: %v", err)
		}
	}
}

// lab reports whether tests boot guests. Then tests/deps.sh has installed what they need.
func lab() bool { return os.Getenv("SMCKIT_LAB") != "" }
