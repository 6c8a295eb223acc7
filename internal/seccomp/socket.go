// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Protocols of AF_SMC. They select the IP version of the TCP connection on which SMC is negotiated.
const (
	smcOverIPv4 = 0
	smcOverIPv6 = 1
)

func smcSocket(domain, typ int) (int, error) {
	proto := smcOverIPv4
	if domain == unix.AF_INET6 {
		proto = smcOverIPv6
	}
	// Do not use unix.Socket: the Go runtime treats it as a call that does not block, and does not release its processor to
	// other goroutines. This call may wait for the module to be loaded.
	fd, _, errno := unix.Syscall(unix.SYS_SOCKET, unix.AF_SMC, uintptr(typ), uintptr(proto))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// isTCP reports whether a program asks for a TCP socket. The filter has already checked this unless the arguments were in
// memory. A request for MPTCP counts, too: Go programs listen with MPTCP by default, and accept plain TCP instead.
func isTCP(r request) bool {
	domain, typ, proto := uint32(r.args[0]), uint32(r.args[1]), uint32(r.args[2])
	return (domain == unix.AF_INET || domain == unix.AF_INET6) && typ&^typeFlags == unix.SOCK_STREAM &&
		(proto == 0 || proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_MPTCP)
}

// makeSocket answers socket(). If it cannot give the program an AF_SMC socket, it lets the kernel make the TCP socket, so that
// the program gets the kernel's own errors.
func (w *worker) makeSocket(r request) {
	// Rules need access to the program at connect() and listen(), so check now that the supervisor has it.
	if w.Match != nil {
		if err := canInspect(r.pid); err != nil {
			w.refused(r, "applying rules to sockets", err)
			w.answerWithoutSMC(r, err)
			return
		}
	}
	fd, err := w.socketFor(r)
	if err != nil {
		w.unavailable(r, err)
		return
	}
	defer unix.Close(fd)
	w.size(r, fd, unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, w.Send)
	w.size(r, fd, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE, w.Receive)
	flags := uint32(0)
	if r.args[1]&unix.SOCK_CLOEXEC != 0 {
		flags = unix.O_CLOEXEC
	}
	// Log before the program continues: it may end at once, and the log should be complete for short programs, too.
	w.log(r, "a socket is AF_SMC")
	switch err = w.add(r.id, fd, flags); {
	case err == nil, errors.Is(err, unix.ENOENT): // or the program has ended
	case errors.Is(err, unix.EMFILE):
		// Do not warn: the kernel returns the same error to the program.
		w.answerWithoutSMC(r, err)
	case errors.Is(err, unix.EINVAL):
		w.warn(r, "addfd", "this kernel cannot install sockets in other processes, which requires Linux 5.14: %s", w.result())
		w.answerWithoutSMC(r, err)
	default:
		// For example, a security module refuses this socket. It may still let the program make one itself.
		w.warn(r, "addfd", "the kernel refuses to install a socket in the program (%v): %s", err, w.result())
		w.answerWithoutSMC(r, err)
	}
}

// result describes for messages how sockets are answered where AF_SMC is not available.
func (w *worker) result() string {
	if w.Require {
		return "sockets are refused"
	}
	return "sockets are TCP"
}

// socketFor makes a socket in the network namespace of the program, owned by its user.
func (w *worker) socketFor(r request) (int, error) {
	leave, err := w.enter(r.pid)
	if err != nil {
		return -1, err
	}
	defer leave()
	if w.root {
		restore, err := assumeUser(r.pid)
		if err != nil {
			return -1, err
		}
		defer restore()
	}
	// Another thread of the supervisor may be starting a program, which must not inherit this socket. The program's own
	// descriptor gets the flag that the program asked for.
	typ := int(uint32(r.args[1])) | unix.SOCK_CLOEXEC
	return w.socket(int(uint32(r.args[0])), typ)
}

// unavailable warns why a program gets no AF_SMC socket, and answers its call.
func (w *worker) unavailable(r request, err error) {
	result := w.result()
	var ns *netnsError
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT):
	case errors.As(err, &ns):
		w.warn(r, "netns", "the supervisor cannot enter its network namespace (%v): its %s; run smc_run as root", ns.error, result)
	case errors.Is(err, unix.EAFNOSUPPORT) && uint32(r.args[0]) == unix.AF_INET6:
		w.warn(r, "ipv6", "AF_SMC over IPv6 is not available (%v): %s", err, result)
	default:
		w.warnAbsent(r, err)
	}
	w.answerWithoutSMC(r, err)
}

// warnAbsent warns, once, that AF_SMC is not available.
func (w *worker) warnAbsent(r request, err error) {
	const key = "smc"
	w.mu.Lock()
	again := w.warned[key]
	w.mu.Unlock()
	if again || w.Quiet {
		return // before it is read from files why
	}
	why := ""
	if w.Absent != nil {
		why = "; " + w.Absent()
	}
	w.warn(r, key, "AF_SMC is not available (%v): %s%s", err, w.result(), why)
}

// answerWithoutSMC answers socket() without an AF_SMC socket.
func (w *worker) answerWithoutSMC(r request, err error) {
	var errno unix.Errno
	if w.Require && errors.As(err, &errno) {
		w.log(r, "a socket is refused: %v", err)
		w.refuse(r.id, errno)
		return
	}
	w.log(r, "a socket is TCP: %v", err)
	w.proceed(r.id)
}

// size sets the size of a buffer, beyond the system's limit if the supervisor is privileged.
func (w *worker) size(r request, fd, option, force, bytes int) {
	if bytes == 0 {
		return
	}
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes)
	if err != nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes)
	}
	if err != nil {
		w.warn(r, fmt.Sprint("size", option), "setting a buffer size of %d bytes: %v", bytes, err)
	}
}
