// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Test32BitProgram runs a 32-bit program, whose system calls have other numbers and may be socketcall(2). It is linked to the C
// library once dynamically and once statically.
func Test32BitProgram(t *testing.T) {
	need(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("not a processor that has programs for i386")
	}
	for _, link := range []string{"-static", "-no-pie"} {
		t.Run(link, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sockets32")
			cc := exec.CommandContext(t.Context(), "cc", "-m32", "-O2", "-Wall", "-Werror", link, "-o", path, "testdata/sockets32.c")
			if out, err := cc.CombinedOutput(); err != nil {
				t.Skipf("no compiler and C library for 32-bit programs, install gcc-multilib: %v: %s", err, out)
			}
			if err := exec.CommandContext(t.Context(), path).Run(); err != nil {
				t.Skipf("no 32-bit programs run here: %v", err)
			}
			want := fmt.Sprintf("%d %d %d 0 1", tag, tag, tag)
			if stdout, stderr := run(t, under(t, behaviour{}, path)); stdout != want || stderr != "" {
				t.Errorf("%q, %q; not %q", stdout, stderr, want)
			}
		})
	}
}
