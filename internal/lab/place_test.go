// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func set(cpus ...int) *unix.CPUSet {
	var s unix.CPUSet
	for _, cpu := range cpus {
		s.Set(cpu)
	}
	return &s
}

func TestPart(t *testing.T) {
	for _, tc := range []struct {
		name  string
		all   *unix.CPUSet
		parts []*unix.CPUSet
	}{
		{"one each", set(0, 1), []*unix.CPUSet{set(0), set(1)}},
		{"two each", set(0, 1, 2, 3), []*unix.CPUSet{set(0, 1), set(2, 3)}},
		{"some are not for us", set(3, 7, 64), []*unix.CPUSet{set(3, 7), set(64)}},
		{"one place", set(0, 5), []*unix.CPUSet{set(0, 5)}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i, want := range tc.parts {
				if got := part(tc.all, i, len(tc.parts)); *got != *want {
					t.Errorf("part %d: %v, want %v", i, got, want)
				}
			}
		})
	}
}

// TestFreePlace takes every place as if other processes had: locks belong to open files.
func TestFreePlace(t *testing.T) {
	t.Setenv("SMCKIT_CACHE", t.TempDir())
	quiet := func(string) {}
	take := func(ctx context.Context) (int, error) { return freePlace(ctx, 2, quiet) }
	if first, err := take(t.Context()); err != nil || first != 0 {
		t.Fatalf("first: %d, %v", first, err)
	}
	held := kept
	defer held.Close()
	if second, err := take(t.Context()); err != nil || second != 1 {
		t.Fatalf("second: %d, %v", second, err)
	}
	defer kept.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if third, err := take(ctx); err == nil {
		t.Fatalf("third: place %d of two", third)
	}
	waits := make(chan struct{})
	tell := func(string) { close(waits) }
	got := make(chan int)
	go func() {
		i, _ := freePlace(t.Context(), 2, tell)
		got <- i
	}()
	<-waits
	held.Close()
	if i := <-got; i != 0 {
		t.Errorf("place %d, want the one that became free", i)
	}
}

func TestTakePlace(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("SMCKIT_CACHE", cache)
	// Earlier tests may have taken a place.
	was := ours.cpus
	ours.cpus = nil
	defer func() { ours.cpus = was }()
	for _, tc := range []struct{ value, want string }{
		{"", ""},
		{"1", ""},
		{"none", "SMCKIT_PLACES=none: not a number of places, 2 for example"},
		{"0", "SMCKIT_PLACES=0: not a number of places, 2 for example"},
	} {
		t.Setenv(places, tc.value)
		cpus, err := takePlace(t.Context(), func(string) {})
		if cpus != nil || (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
			t.Errorf("%q: %v, %v, want %q", tc.value, cpus, err, tc.want)
		}
	}
	if files, _ := filepath.Glob(cache + "/places/*"); files != nil {
		t.Errorf("there are %v: no place was wanted", files)
	}
}

func TestOnCPUs(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, now unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	want := part(&before, 0, before.Count())
	var child unix.CPUSet
	cmd := exec.Command("sleep", "60")
	err := onCPUs(want, cmd.Start)
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if err := unix.SchedGetaffinity(cmd.Process.Pid, &child); err != nil || child != *want {
		t.Errorf("the child is on %v, %v, want %v", child, err, *want)
	}
	if err := unix.SchedGetaffinity(0, &now); err != nil || now != before {
		t.Errorf("afterwards this thread is on %v, %v, want %v", now, err, before)
	}
}
