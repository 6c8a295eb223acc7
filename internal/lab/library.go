// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// LibraryArchs lists the architectures, by Debian's names, that CrossLibrary has a compiler for.
func LibraryArchs() []string {
	var list []string
	for _, a := range architectures {
		if !a.native() && !slices.Contains(list, a.debian) {
			list = append(list, a.debian)
		}
	}
	return list
}

// crossCompiler is a root with a C compiler for an architecture, the headers of a kernel, and what preload/build.sh runs.
func crossCompiler(a *architecture) *packageTree {
	return &packageTree{
		parent: "compiler/" + a.debian, apt: "compiler-" + a.debian, arch: NativeArch,
		packages: []string{"coreutils", "dash", "findutils", "gcc-" + a.triplet, "linux-libc-dev-" + a.debian + "-cross"},
	}
}

// CrossLibrary builds the library that smc_run preloads into the directory out, for another architecture than NativeArch. The compiler is
// that of a Debian release, so that no kernel of the architecture is needed.
func CrossLibrary(ctx context.Context, arch, out string, progress func(string)) error {
	a, err := findArch(arch)
	if err != nil {
		return err
	}
	dir, err := crossCompiler(a).obtain(ctx, progress)
	if err != nil {
		return fmt.Errorf("compiler for %s: %w", arch, err)
	}
	if out, err = filepath.Abs(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	return (&buildRoot{dir: dir}).compile(ctx, out, "/source/preload/build.sh", "/out", a.debian)
}

// NeedCompiler skips a test if a compiler for one of LibraryArchs() would have to be downloaded, except in full runs.
func NeedCompiler(t testing.TB, arch string) {
	t.Helper()
	a, err := findArch(arch)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exec.LookPath(a.triplet + "-gcc"); err == nil || Full() {
		return
	}
	cache, err := CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(crossCompiler(a).dir(cache)); err != nil {
		t.Skipf("downloads a compiler for %s: set SMCKIT_FULL=1, or run 'make packages-all' once", arch)
	}
}
