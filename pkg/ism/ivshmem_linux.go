// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// readMapped returns the first n bytes of the memory that a BAR's file in sysfs stands for, nil if it cannot be mapped.
func readMapped(path string, n int) (out []byte) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if st, err := f.Stat(); err != nil || st.Size() < int64(n) {
		return nil
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Munmap(mem) }()
	// If the device is unplugged now, reading faults.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() != nil {
			out = nil
		}
	}()
	return append([]byte(nil), mem...)
}
