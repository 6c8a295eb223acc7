// SPDX-License-Identifier: Apache-2.0

// Package sigstart finds out which signals were ignored when the program started, for a command that replaces itself with
// another program: exec keeps ignored signals ignored, and systemd, nohup and shells rely on that.
//
// The Go runtime replaces the dispositions of nearly all signals before any Go code runs, and does not keep the old ones. So
// this package has an entry point of its own, which queries the kernel first and then jumps to the runtime's. The linker uses
// it with -ldflags '-E _smckit_rt0', which the Makefile passes for the commands that need it. Without it, and on machines other
// than x86-64, the dispositions are unknown.
package sigstart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signals is the number of the last signal on machines for which there is an entry point.
const signals = 64

// Set by the entry point, before the runtime starts: bit N-1 of ignored is signal N.
var (
	ignored uint64
	known   uint64
)

// Ignored returns the signals that were ignored when the program started. isKnown is false in programs that were not linked
// with the entry point.
func Ignored() (all []syscall.Signal, isKnown bool) {
	for s := range signals {
		if ignored&(1<<s) != 0 {
			all = append(all, syscall.Signal(s+1))
		}
	}
	return all, known != 0
}

// Restore ignores the signals again that were ignored when the program started, and does not change others. Call it immediately
// before exec: afterwards this program cannot handle those signals, and if SIGCHLD is ignored, it cannot wait for children.
func Restore() {
	all, _ := Ignored()
	for _, s := range all {
		// Do not use package os/signal: it ignores requests for signals that the runtime needs for itself.
		action := struct {
			handler, flags, restorer uintptr
			mask                     uint64
		}{handler: 1} // SIG_IGN
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
	}
}
