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

// The main goroutine stays on the main thread. Yama knows of the process that is allowed to look into another one by that
// one's first thread, and forgets it where another thread executes a program.
func init() { runtime.LockOSThread() }

// Exec starts the supervisor, installs the filter and executes the program, as the process that this one is. It returns only
// if it fails: with an UnavailableError as long as this thread has no filter, with an ExecError if the kernel refuses the program.
// After anything but an UnavailableError the calling thread may have the filter, without a supervisor: all that is left to do is
// to report the error.
//
// The supervisor is an argv, with the path of a program, normally this one, that calls Supervise with its file 3. It is no child
// of the program's and has neither its terminal, its files nor its directory; in the one case of a program that adopts orphans
// (process 1, or PR_SET_CHILD_SUBREAPER) it becomes its child.
//
// To be called by the main goroutine. Any other works, too, but not for rules where Yama restricts ptrace(2).
func Exec(p Program, calls Calls, supervisor []string) error {
	runtime.LockOSThread()
	raw, err := compile(calls)
	if err != nil {
		return &UnavailableError{err}
	}
	if err := probe(); err != nil {
		return &UnavailableError{err}
	}
	s, err := start(supervisor)
	if err != nil {
		return &UnavailableError{fmt.Errorf("starting the supervisor of system calls: %w", err)}
	}
	defer s.close()
	// Without Yama there is nobody to tell.
	_ = unix.Prctl(unix.PR_SET_PTRACER, uintptr(s.pid), 0, 0, 0)
	listener, err := install(raw)
	if err != nil {
		return &UnavailableError{err}
	}
	if err := s.hand(listener); err != nil {
		return fmt.Errorf("the supervisor of system calls has gone: %w", err)
	}
	if p.Prepare != nil {
		p.Prepare()
	}
	if err := syscall.Exec(p.Path, p.Argv, p.Env); err != nil {
		return &ExecError{p.Path, err}
	}
	return nil
}

// compile returns the filter as the kernel takes it.
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

// errTooOld is the error of kernels whose supervisors could not answer: before Linux 5.5 they cannot even let a call proceed.
var errTooOld = errors.New("this kernel cannot put sockets into programs, Linux 5.14 can")

// probe finds out whether the kernel has what a supervisor needs. A filter cannot be removed again, so it is tried on a thread that
// ends afterwards.
func probe() error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		result <- func() error {
			fd, err := install([]unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}})
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			// No file has this number: a kernel that knows the flag looks for it first.
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

// install gives the calling thread the filter and returns where the kernel asks, a file that exec closes.
func install(code []unix.SockFilter) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// A call that the supervisor has taken is not interrupted by signals but those that kill. Before Linux 5.19 it is, and
	// then made again.
	// The filter confines nobody, so the processor's speculation need not suffer, which before Linux 5.16 it would.
	flags := uintptr(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV |
		unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	for confined := false; ; {
		fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
		switch {
		case errno == 0:
			return int(fd), nil
		case errno == unix.EACCES && !confined:
			// Not before: whoever may do without goes on to start programs with other privileges.
			if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
				return -1, fmt.Errorf("giving up the gain of privileges: %w", err)
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
