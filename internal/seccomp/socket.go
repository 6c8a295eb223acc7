// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Protocols of AF_SMC: by which the connection is set up.
const (
	smcOverIPv4 = 0
	smcOverIPv6 = 1
)

func smcSocket(domain, typ int) (int, error) {
	proto := smcOverIPv4
	if domain == unix.AF_INET6 {
		proto = smcOverIPv6
	}
	// Not unix.Socket: to Go, that is a call that does not block, and keeps a processor from other goroutines. This one may
	// wait for the module to be loaded.
	fd, _, errno := unix.Syscall(unix.SYS_SOCKET, unix.AF_SMC, uintptr(typ), uintptr(proto))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

// isTCP says whether a program asks for a TCP socket, as the filter has done unless the arguments were in memory. MPTCP is meant,
// too: Go programs listen by that unless they are told not to, and can do without.
func isTCP(r request) bool {
	domain, typ, proto := uint32(r.args[0]), uint32(r.args[1]), uint32(r.args[2])
	return (domain == unix.AF_INET || domain == unix.AF_INET6) && typ&^typeFlags == unix.SOCK_STREAM &&
		(proto == 0 || proto == unix.IPPROTO_TCP || proto == unix.IPPROTO_MPTCP)
}

// makeSocket answers socket(). If it cannot give the program an AF_SMC socket, the program makes its TCP socket itself, so that
// it is told what is wrong with that by the kernel.
func (w *worker) makeSocket(r request) {
	// A socket outside of the rules could not be found out later.
	if w.Match != nil {
		if err := canLookInto(r.pid); err != nil {
			w.refused(r, "applying rules to sockets", err)
			w.instead(r, err)
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
	// Before the program goes on, and may end: whoever asked for words about each socket wants them of short programs, too.
	w.log(r, "a socket is AF_SMC")
	switch err = w.add(r.id, fd, flags); {
	case err == nil, errors.Is(err, unix.ENOENT): // or the program has gone
	case errors.Is(err, unix.EMFILE):
		// Nothing to warn about: the kernel tells the program the same.
		w.instead(r, err)
	case errors.Is(err, unix.EINVAL):
		w.warn(r, "addfd", "this kernel cannot put sockets into programs, Linux 5.14 can: %s", w.result())
		w.instead(r, err)
	default:
		// A security module refuses this socket, for example. It may well let the program have one of its own.
		w.warn(r, "addfd", "the kernel does not put a socket into the program (%v): %s", err, w.result())
		w.instead(r, err)
	}
}

// result says what becomes of sockets where AF_SMC is not to be had.
func (w *worker) result() string {
	if w.Require {
		return "sockets are refused"
	}
	return "sockets are TCP"
}

// socketFor makes a socket as if the program had: in its network namespace, and of its user.
func (w *worker) socketFor(r request) (int, error) {
	leave, err := w.enter(r.pid)
	if err != nil {
		return -1, err
	}
	defer leave()
	if w.root {
		restore, err := become(r.pid)
		if err != nil {
			return -1, err
		}
		defer restore()
	}
	// It is not to get into a program that is being started by another thread; the program's own has the flag it wants.
	typ := int(uint32(r.args[1])) | unix.SOCK_CLOEXEC
	return w.socket(int(uint32(r.args[0])), typ)
}

// unavailable says why there is no AF_SMC socket for a program.
func (w *worker) unavailable(r request, err error) {
	result := w.result()
	var ns *netnsError
	switch {
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENOENT):
	case errors.As(err, &ns):
		w.warn(r, "netns", "its network namespace cannot be entered (%v): its %s; root can", ns.error, result)
	case errors.Is(err, unix.EAFNOSUPPORT) && uint32(r.args[0]) == unix.AF_INET6:
		w.warn(r, "ipv6", "AF_SMC over IPv6 is not available (%v): %s", err, result)
	default:
		w.warn(r, "smc", "AF_SMC is not available (%v): %s; 'modprobe smc' as root tells more", err, result)
	}
	w.instead(r, err)
}

// instead answers socket() without an AF_SMC socket.
func (w *worker) instead(r request, err error) {
	var errno unix.Errno
	if w.Require && errors.As(err, &errno) {
		w.log(r, "a socket is refused: %v", err)
		w.refuse(r.id, errno)
		return
	}
	w.log(r, "a socket is TCP: %v", err)
	w.proceed(r.id)
}

// size sets the size of a buffer: beyond the system's limit, if it may.
func (w *worker) size(r request, fd, option, force, bytes int) {
	if bytes == 0 {
		return
	}
	err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, force, bytes)
	if err != nil {
		err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, bytes)
	}
	if err != nil {
		w.warn(r, fmt.Sprint("size", option), "a buffer of %d bytes: %v", bytes, err)
	}
}
