// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const failslab = "/sys/kernel/debug/failslab/"

// NeedFailslab skips the test if the kernel cannot inject allocation failures. Otherwise it prepares the injection:
// allocations that could wait for memory may fail too, and the kernel does not log them.
func NeedFailslab(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(failslab + "probability"); err != nil {
		t.Skip("this kernel cannot let allocations fail")
	}
	Run(t, "echo 0 >"+failslab+"ignore-gfp-wait; for f in "+failslab+"../fail*/verbose; do echo 0 >$f; done")
}

// Failing runs a function on a thread whose nth allocation from here on fails. It returns whether there was one.
func Failing(n int, do func() error) (failed bool, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Open the file now: later, this allocation could be the one that fails.
	file, err := unix.Open(fmt.Sprintf("/proc/self/task/%d/fail-nth", unix.Gettid()), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("fail-nth: %w", err)
	}
	defer unix.Close(file)
	if _, err := unix.Write(file, fmt.Append(nil, n)); err != nil {
		return false, fmt.Errorf("fail-nth: %w", err)
	}
	err = do()
	var left [1]byte
	_, rerr := unix.Pread(file, left[:], 0)
	_, werr := unix.Pwrite(file, []byte("0"), 0)
	return left[0] == '0', errors.Join(err, rerr, werr)
}

// reserveHeap makes Go's heap larger than a test needs between two collections. If the heap grew on a thread whose
// allocations fail, the program would end.
func reserveHeap() {
	runtime.KeepAlive(make([]byte, 32<<20))
	runtime.GC()
}

// FailEach runs a function as often as it allocates memory, each time with another of its allocations failing, and ignores
// its errors. Without a failure the function must succeed.
func FailEach(t *testing.T, do func() error) {
	t.Helper()
	FailEachThen(t, do, func() {})
}

// FailEachThen is FailEach with another function that runs after each of these runs, with memory.
func FailEachThen(t *testing.T, do func() error, then func()) {
	t.Helper()
	reserveHeap()
	for n := 1; ; n++ {
		failed, err := Failing(n, do)
		then()
		if failed {
			continue
		}
		if err != nil {
			t.Fatalf("with memory: %v", err)
		}
		t.Logf("%d allocations", n-1)
		return
	}
}

// FailAnywhere runs a function while one of twenty allocations fails that a module makes, or that functions make which it
// calls, on every thread, including those of the kernel. Allocations of programs, which read their files from another
// machine, and of the kernel's reports do not fail: they are not tested.
func FailAnywhere(t *testing.T, module string, do func()) {
	t.Helper()
	begin, end := textOf(t, module)
	Run(t, fmt.Sprintf("cd %s && echo %#x >require-start && echo %#x >require-end", failslab, begin, end))
	defer Run(t, "cd "+failslab+" && echo 0 >require-start && echo 0xffffffffffffffff >require-end")
	// Open the file now, and do not use a program at the end: then this could be the allocation that fails.
	probability, err := os.OpenFile(failslab+"probability", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer probability.Close()
	Run(t, "echo -1 >"+failslab+"times; echo 5 >"+failslab+"probability")
	do()
	if _, err := probability.WriteString("0"); err != nil {
		t.Fatal(err)
	}
}

// textOf returns where a module's code is, between two addresses.
func textOf(t *testing.T, module string) (begin, end uint64) {
	t.Helper()
	all, err := os.ReadFile("/proc/modules")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(all)) {
		// Name, size, references, users, state, address, and perhaps taints.
		f := strings.Fields(line)
		if len(f) < 6 || f[0] != module {
			continue
		}
		size, err1 := strconv.ParseUint(f[1], 10, 64)
		begin, err2 := strconv.ParseUint(f[5], 0, 64)
		if err := errors.Join(err1, err2); err != nil || begin == 0 {
			t.Fatalf("/proc/modules says %q: %v", line, err)
		}
		return begin, begin + size
	}
	t.Fatalf("module %s is not loaded", module)
	return 0, 0
}
