// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// places names the variable with the number of parts into which the tests of several packages, run at a time, divide this
// machine's processors. Guests that share a processor with those of another package would hold each other up for whole time
// slices, which the timers of RDMA do not survive; guests that are alone on a processor do not notice that another is busy.
const places = "SMCKIT_PLACES"

// ours is the place of this process. Once taken, the process keeps it until it ends.
var ours struct {
	sync.Mutex
	cpus *unix.CPUSet
}

// takePlace returns the processors that the guests of this process may use, nil for all. It waits while other processes have
// taken every place.
func takePlace(ctx context.Context, progress func(string)) (*unix.CPUSet, error) {
	ours.Lock()
	defer ours.Unlock()
	value := os.Getenv(places)
	if ours.cpus != nil || value == "" {
		return ours.cpus, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 {
		return nil, fmt.Errorf("%s=%s: not a number of places, 2 for example", places, value)
	}
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("asking for this machine's processors: %w", err)
	}
	if n = min(n, all.Count()); n == 1 {
		return nil, nil
	}
	i, err := freePlace(ctx, n, progress)
	if err != nil {
		return nil, err
	}
	ours.cpus = part(&all, i, n)
	// A test process that was started by another one shares its place.
	return ours.cpus, os.Unsetenv(places)
}

// freePlace returns the number of a place that no other process has. It is locked until this one ends.
func freePlace(ctx context.Context, n int, progress func(string)) (int, error) {
	cache, err := CacheDir()
	if err != nil {
		return 0, err
	}
	dir := filepath.Join(cache, "places")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	files := make([]*os.File, n)
	for i := range files {
		if files[i], err = os.OpenFile(filepath.Join(dir, strconv.Itoa(i)), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
			return 0, err
		}
	}
	for reported := false; ; reported = true {
		for i, f := range files {
			err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
			if err == nil {
				return i, closeBut(files, i)
			}
			if !errors.Is(err, unix.EWOULDBLOCK) {
				return 0, fmt.Errorf("locking %s: %w", f.Name(), err)
			}
		}
		if !reported {
			progress("waiting for a place: others test")
		}
		select {
		case <-ctx.Done():
			return 0, errors.Join(ctx.Err(), closeBut(files, -1))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// kept holds the file whose lock is this process's place.
var kept *os.File

func closeBut(files []*os.File, keep int) error {
	var err error
	for i, f := range files {
		if i == keep {
			kept = f
			continue
		}
		err = errors.Join(err, f.Close())
	}
	return err
}

// part returns the i-th of n parts of a set of at least n processors. The parts differ in size by one at most.
func part(all *unix.CPUSet, i, n int) *unix.CPUSet {
	var cpus unix.CPUSet
	for cpu, seen := 0, 0; seen < all.Count(); cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if seen*n/all.Count() == i {
			cpus.Set(cpu)
		}
		seen++
	}
	return &cpus
}

// onCPUs runs start so that its children run on the given processors. The caller must have locked the goroutine to its thread.
func onCPUs(cpus *unix.CPUSet, start func() error) error {
	if cpus == nil {
		return start()
	}
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	if err := unix.SchedSetaffinity(0, cpus); err != nil {
		return err
	}
	// Restoring the previous set cannot fail.
	defer unix.SchedSetaffinity(0, &before)
	return start()
}
