// SPDX-License-Identifier: Apache-2.0

//go:build linux

package preload

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// compilers makes a directory with compilers that write their name and arguments instead of a library, and the programs that the script runs.
func compilers(t *testing.T, names ...string) (path string) {
	t.Helper()
	path = t.TempDir()
	for _, name := range names {
		machine, _, _ := strings.Cut(name, "-")
		if machine == "cc" {
			machine = "x86_64"
		}
		script := fmt.Sprintf(`#!/bin/sh
case $1 in
-dumpmachine) echo %s-linux-gnu; exit ;;
-print-multiarch) exit ;;
esac
all=$*
while [ "$1" != -o ]; do shift; done
echo "%s $all" >"$2"
`, machine, name)
		if err := os.WriteFile(filepath.Join(path, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"dirname", "find", "mkdir", "mv"} {
		real, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(real, filepath.Join(path, program)); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// TestCompilers checks which compiler the script chooses for which architecture.
func TestCompilers(t *testing.T) {
	need.Programs(t, "sh", "dirname", "find", "mkdir", "mv")
	const arm, z = "aarch64-linux-gnu-gcc", "s390x-linux-gnu-gcc"
	const sorry = ", so no libsmc-preload.so.1: smc_run --method preload will not work\n"
	for _, tc := range []struct {
		name      string
		installed []string
		cc        string
		args      []string
		used      string // the beginning of the compiler's command line
		has       string // an argument of it
		files     int
		says      string
		status    int
	}{
		{name: "this machine", installed: []string{"cc", arm}, used: "cc ", has: "-nostdlib", files: 2},
		{name: "this machine has none", installed: []string{arm}, says: "preload: no C compiler (cc)" + sorry},
		{name: "another", installed: []string{"cc", arm, z}, args: []string{"s390x"}, used: z + " ", has: "-nostdlib", files: 1},
		{name: "no atomic functions", installed: []string{"cc", arm, z}, args: []string{"arm64"}, used: arm + " ", has: "-mno-outline-atomics", files: 1},
		{name: "the user's", installed: []string{"cc", "aarch64-other"}, cc: "aarch64-other", args: []string{"arm64"}, used: "aarch64-other ", has: "-nostdlib", files: 1},
		{name: "another has none", installed: []string{"cc", arm}, args: []string{"s390x"}, says: "preload: no C compiler (" + z + ")" + sorry},
		{
			name: "for the wrong one", installed: []string{"cc", arm}, cc: "cc", args: []string{"arm64"}, status: 1,
			says: "preload: CC=cc compiles for x86_64-linux-gnu, not for arm64: unset CC, or name a compiler for arm64\n",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out := t.TempDir()
			cmd := exec.Command("../../preload/build.sh", append([]string{out}, tc.args...)...)
			cmd.Env = []string{"PATH=" + compilers(t, tc.installed...), "CC=" + tc.cc}
			said, err := cmd.CombinedOutput()
			if string(said) != tc.says || cmd.ProcessState.ExitCode() != tc.status {
				t.Errorf("%v, %q, not %q", err, said, tc.says)
			}
			var files []string
			for _, dir := range []string{out, filepath.Join(out, "lib32")} {
				if data, err := os.ReadFile(filepath.Join(dir, "libsmc-preload.so.1")); err == nil {
					files = append(files, string(data))
				}
			}
			if len(files) != tc.files {
				t.Fatalf("%d libraries, not %d: %q", len(files), tc.files, files)
			}
			if tc.files > 0 && (!strings.HasPrefix(files[0], tc.used) || !slices.Contains(strings.Fields(files[0]), tc.has)) {
				t.Errorf("built by: %s", files[0])
			}
		})
	}
}
