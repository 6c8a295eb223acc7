// SPDX-License-Identifier: Apache-2.0

// Package sigstart knows which signals a program was started with ignored, for a command that executes another program in its
// place: signals that are ignored stay so by exec, and systemd, nohup and shells rely on that.
//
// The Go runtime replaces the dispositions of nearly all signals before any Go code runs, and keeps what they were to itself.
// So this package has an entry point of its own, which asks the kernel first and then goes on to the runtime's. The linker
// takes it with -ldflags '-E _smckit_rt0'; the Makefile says so for the commands that need it. Without it, and on machines
// other than x86-64, nothing is known.
package sigstart

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// signals is the number of the last signal that Linux has on the machines that there is an entry point for.
const signals = 64

// Set by the entry point, before the runtime starts: bit N-1 of ignored is signal N.
var (
	ignored uint64
	known   uint64
)

// Ignored returns the signals that were ignored when the program started. It is not known in programs that were not linked with
// the entry point.
func Ignored() (all []syscall.Signal, isKnown bool) {
	for s := range signals {
		if ignored&(1<<s) != 0 {
			all = append(all, syscall.Signal(s+1))
		}
	}
	return all, known != 0
}

// Restore ignores the signals again that were ignored when the program started; the dispositions of others stay as they are. It
// is to be called right before exec: this program cannot handle those signals any more, and with SIGCHLD ignored it cannot wait
// for children.
func Restore() {
	all, _ := Ignored()
	for _, s := range all {
		// Not by package os/signal, which leaves out the signals that the runtime needs for itself.
		action := struct {
			handler, flags, restorer uintptr
			mask                     uint64
		}{handler: 1} // SIG_IGN
		_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&action)), 0, unsafe.Sizeof(action.mask), 0, 0)
	}
}
