// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	needs "github.com/smckit/smckit/internal/need"
)

// Test32BitProgram runs a 32-bit program, whose system calls have other numbers and may be socketcall(2). It is linked to the C
// library once dynamically and once statically.
func Test32BitProgram(t *testing.T) {
	need(t)
	needs.Bits32(t)
	for _, link := range []string{"-static", "-no-pie"} {
		t.Run(link, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "sockets32")
			cc := exec.CommandContext(t.Context(), "cc", "-m32", "-O2", "-Wall", "-Werror", link, "-o", path, "testdata/sockets32.c")
			if out, err := cc.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			want := fmt.Sprintf("%d %d %d 0 1", tag, tag, tag)
			if stdout, stderr := run(t, under(t, behaviour{}, path)); stdout != want || stderr != "" {
				t.Errorf("%q, %q; not %q", stdout, stderr, want)
			}
		})
	}
}
