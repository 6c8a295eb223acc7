// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestModuleCache checks that a build comes back as it was, in place of another, and that builds are removed which nobody uses.
func TestModuleCache(t *testing.T) {
	cache := moduleCache(filepath.Join(t.TempDir(), "modules"))
	stamp := func(n int) string { return strings.Repeat(string(rune('A'+n)), 64) }
	built := func(n int) string {
		return write(t, map[string]string{"smc.ko": stamp(n), "tree/modules.dep": "x", stampFile: stamp(n)})
	}
	long := time.Now().Add(-time.Hour)
	for n := range keptBuilds {
		if err := cache.keep(stamp(n), built(n)); err != nil {
			t.Fatal(err)
		}
		// The first two are the oldest.
		if at := long.Add(time.Duration(n) * time.Minute); os.Chtimes(cache.entry(stamp(n)), at, at) != nil {
			t.Fatal("no times")
		}
	}

	dir := write(t, map[string]string{"smc.ko": "old", "old.ko": ""})
	if taken, err := cache.take(stamp(keptBuilds), dir); taken || err != nil {
		t.Errorf("a build that is not there: %v, %v", taken, err)
	}
	if taken, err := cache.take(stamp(0), dir); !taken || err != nil {
		t.Fatalf("%v, %v", taken, err)
	}
	for name, want := range map[string]string{"smc.ko": stamp(0), "tree/modules.dep": "x", stampFile: stamp(0)} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, gone := range []string{filepath.Join(dir, "old.ko"), dir + ".new*"} {
		if names, err := filepath.Glob(gone); len(names) != 0 || err != nil {
			t.Errorf("left behind: %v, %v", names, err)
		}
	}

	if err := cache.keep(stamp(keptBuilds), built(keptBuilds)); err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int]bool{0: true, 1: false, 2: true, keptBuilds: true} {
		if taken, err := cache.take(stamp(n), filepath.Join(t.TempDir(), "kernel")); taken != want || err != nil {
			t.Errorf("build %d: %v, %v, want %v", n, taken, err, want)
		}
	}
}
