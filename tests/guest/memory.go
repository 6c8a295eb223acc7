// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Meminfo is a line of /proc/meminfo, in KiB.
func Meminfo(t testing.TB, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == name+":" {
			n, err := strconv.Atoi(f[1])
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("no %s in %s", name, b)
	return 0
}

// shrink makes every slab cache return the memory that it only keeps for reuse. That includes the quarantine in which KASAN
// keeps freed objects, up to a 32nd of the memory, which would look like a leak.
func shrink() {
	files, _ := filepath.Glob("/sys/kernel/slab/*/shrink")
	for _, f := range files {
		// Caches that are merged into one have a name each.
		if dir, err := os.Lstat(filepath.Dir(f)); err == nil && dir.IsDir() {
			_ = os.WriteFile(f, []byte("1"), 0)
		}
	}
}

// slabs returns the memory that each cache uses, in KiB.
func slabs(t testing.TB) map[string]int {
	t.Helper()
	b, err := os.ReadFile("/proc/slabinfo")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]int{}
	for line := range strings.Lines(string(b)) {
		var name string
		var active, objects, size, perSlab, pages, inUse, count int
		n, _ := fmt.Sscanf(line, "%s %d %d %d %d %d : tunables 0 0 0 : slabdata %d %d", &name, &active, &objects, &size,
			&perSlab, &pages, &inUse, &count)
		if n == 8 {
			all[name] = count * pages * os.Getpagesize() / 1024
		}
	}
	return all
}

// grown names the caches that grew most.
func grown(before, now map[string]int) string {
	var names []string
	for name := range now {
		if now[name] > before[name] {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Compare(now[b]-before[b], now[a]-before[a]) })
	var out strings.Builder
	for _, name := range names[:min(len(names), 8)] {
		fmt.Fprintf(&out, " %s %+d", name, now[name]-before[name])
	}
	return out.String()
}

// SMCDGuest is made in guests of tests of SMC-D.
const SMCDGuest Marker = "/run/smckit-smcd"

// Settled checks at the end of a test that no objects of our module are left, and that the kernel's memory has been freed.
func Settled(t testing.TB) {
	t.Helper()
	MemoryBack(t, 32<<10, 100*time.Second)
	t.Cleanup(func() {
		Await(t, 100*time.Second, func() string { return Left("smc_sock", "smc_conn", "smc_rendezvous") })
	})
}

// MemoryBack checks at the end of a test that the memory in use is the same as before, except for the given number of KiB that
// the kernel may keep as caches.
func MemoryBack(t testing.TB, spare int, within time.Duration) {
	t.Helper()
	kinds := []string{"SUnreclaim", "Unevictable", "VmallocUsed"}
	read := func() (sum int, each []int) {
		for _, kind := range kinds {
			n := Meminfo(t, kind)
			sum, each = sum+n, append(each, n)
		}
		return sum, each
	}
	shrink()
	before, eachBefore := read()
	slabsBefore := slabs(t)
	t.Cleanup(func() {
		t.Helper()
		Await(t, within, func() string {
			if now, _ := read(); now <= before+spare {
				return ""
			}
			shrink()
			if now, each := read(); now > before+spare {
				return fmt.Sprintf("the kernel has %d KiB, before it had %d; %v: %v, before %v; slabs that grew:%s", now, before,
					kinds, each, eachBefore, grown(slabsBefore, slabs(t)))
			}
			return ""
		})
	})
}
