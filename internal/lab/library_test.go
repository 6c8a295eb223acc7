// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLibraryArchs(t *testing.T) {
	if diff := cmp.Diff([]string{"s390x", "arm64"}, LibraryArchs()); diff != "" {
		t.Error(diff)
	}
	// The size of a page does not matter to a compiler.
	small, err1 := findArch("arm64")
	large, err2 := findArch("arm64-16k")
	if err1 != nil || err2 != nil || crossCompiler(small).dir("/") != crossCompiler(large).dir("/") {
		t.Errorf("two compilers for arm64: %v, %v", err1, err2)
	}
}

// TestPackageTree unpacks the compiler for an architecture.
func TestPackageTree(t *testing.T) {
	dir, src, _ := rooter(t)
	a, err := findArch("s390x")
	if err != nil {
		t.Fatal(err)
	}
	p := crossCompiler(a)
	if p.arch != NativeArch {
		t.Errorf("the compiler runs on %s", p.arch)
	}
	final := p.dir(dir)
	if err := p.unpack(t.Context(), src, final, func(s string) { t.Log(s) }); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(src.asked, "gcc-s390x-linux-gnu") {
		t.Errorf("asked for %q", src.asked)
	}
	if data, err := os.ReadFile(filepath.Join(final, "usr/bin/new")); err != nil || string(data) != "in usr" {
		t.Errorf("%q, %v", data, err)
	}
	if st, err := os.Stat(filepath.Join(final, "tmp")); err != nil || st.Mode() != fs.ModeDir|fs.ModeSticky|0o777 {
		t.Errorf("/tmp: %v, %v", st.Mode(), err)
	}
	// A list with another package is another tree.
	if (&packageTree{parent: p.parent, packages: append(slices.Clone(p.packages), "more")}).dir(dir) == final {
		t.Error("another list has the same tree")
	}
}
