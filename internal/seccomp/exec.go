// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Keep the main goroutine on the main thread. PR_SET_PTRACER permits the supervisor to inspect this process: Yama stores the
// permission for the first thread of the process, and drops it when another thread executes a program.
func init() { runtime.LockOSThread() }

// Exec starts the supervisor, installs the filter and executes the program in place of this process. It returns only if it
// fails: with an UnavailableError as long as this thread has no filter, with an ExecError if the kernel refuses the program.
// After any error other than an UnavailableError, the calling thread may have the filter but no supervisor, so the caller can
// only report the error.
//
// supervisor is the path of a program, normally this one, that calls Supervise with its file 3 if it is started with argv. The
// supervisor is not a child of the program and shares neither its terminal, its files nor its directory. If the program adopts
// orphans (process 1, or PR_SET_CHILD_SUBREAPER), the supervisor becomes its child after all.
//
// Call Exec on the main goroutine. Other goroutines work, too, except with rules where Yama restricts ptrace(2).
func Exec(p Program, calls Calls, supervisor string, argv []string) error {
	runtime.LockOSThread()
	raw, err := compile(calls)
	if err != nil {
		return &UnavailableError{err}
	}
	if err := probe(); err != nil {
		return &UnavailableError{err}
	}
	s, err := start(supervisor, argv)
	if err != nil {
		return &UnavailableError{fmt.Errorf("starting the supervisor of system calls: %w", err)}
	}
	defer s.close()
	// A kernel without Yama refuses this option and does not need it.
	_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(s.pid), 0, 0, 0)
	listener, err := install(raw)
	if err != nil {
		return &UnavailableError{err}
	}
	if err := s.sendListener(listener); err != nil {
		return fmt.Errorf("the supervisor of system calls has ended: %w", err)
	}
	if p.Prepare != nil {
		p.Prepare()
	}
	if err := syscall.Exec(p.Path, p.Argv, p.Env); err != nil {
		return &ExecError{p.Path, err}
	}
	return nil
}

// compile returns the filter in the format of the kernel.
func compile(calls Calls) ([]unix.SockFilter, error) {
	if len(abis[runtime.GOARCH]) == 0 {
		return nil, fmt.Errorf("system calls of programs for %s are not known", runtime.GOARCH)
	}
	code, err := filter(calls, abis[runtime.GOARCH], runtime.GOARCH == "s390x")
	if err != nil {
		return nil, err
	}
	raw := make([]unix.SockFilter, len(code))
	for i, c := range code {
		raw[i] = unix.SockFilter{Code: c.Op, Jt: c.Jt, Jf: c.Jf, K: c.K}
	}
	return raw, nil
}

// errTooOld is returned on kernels on which a supervisor cannot install files in programs. Before Linux 5.5 it cannot even let
// a call proceed.
var errTooOld = errors.New("this kernel cannot install sockets in other processes, which requires Linux 5.14")

// probe checks whether the kernel supports everything that a supervisor needs. A filter cannot be removed again, so probe
// installs one on a thread that ends afterwards.
func probe() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // not unlocked, so that the thread ends with the goroutine
		result <- func() error {
			fd, err := install([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}})
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			// A kernel that knows the flag looks for the file first, and no file has this number: it returns EBADF.
			a := addition{flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: ^uint32(0)}
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SECCOMP_IOCTL_NOTIF_ADDFD, uintptr(unsafe.Pointer(&a)))
			if errno != unix.EBADF {
				return fmt.Errorf("%w (%w)", errTooOld, errno)
			}
			return nil
		}()
	}()
	return <-result
}

// install installs the filter on the calling thread and returns the listener, a file that exec closes.
func install(code []unix.SockFilter) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// WAIT_KILLABLE_RECV: only a fatal signal interrupts a call that the supervisor has received. Before Linux 5.19, any signal
	// interrupts it, and the kernel restarts it. SPEC_ALLOW: the filter is no security boundary, so it does not have to disable
	// speculation, as filters did by default before Linux 5.16.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
		unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	for confined := false; ; {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		switch {
		case errno == 0:
			return int(fd), nil
		case errno == unix.EACCES && !confined:
			// Set this only if the kernel asks for it: a process that may install filters without it can still start programs
			// with other privileges.
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return -1, fmt.Errorf("setting no_new_privs: %w", err)
			}
			confined = true
			continue
		case errno == unix.EINVAL && flags&unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV != 0:
			flags &^= unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
			continue
		case errno == unix.EBUSY:
			return -1, ErrSupervised
		case errno == unix.EINVAL, errno == unix.ENOSYS:
			return -1, fmt.Errorf("%w (%w)", errTooOld, errno)
		}
		return -1, fmt.Errorf("installing a filter of system calls: %w", errno)
	}
}
