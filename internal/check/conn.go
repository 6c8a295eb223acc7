// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// conn is a connection on a blocking socket. AF_SMC sockets are none that package net takes; and a blocking call with the
// kernel's own timeouts is what every module of AF_SMC gets right.
type conn struct{ fd int }

// newSocket makes a stream socket of AF_SMC, or of TCP, for an address.
func newSocket(smc bool, addr netip.Addr) (int, error) {
	family, proto := unix.AF_INET, 0
	if !addr.Is4() {
		family = unix.AF_INET6
	}
	if smc {
		proto = protoSMC
		if family == unix.AF_INET6 {
			proto = protoSMC6
		}
		family = unix.AF_SMC
	}
	return unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
}

func sockaddr(a netip.AddrPort) unix.Sockaddr {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}
	}
	return &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
}

// setTimeout limits how long one call may wait.
func setTimeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
}

// connect connects a socket, for as long as its timeout allows.
func connect(fd int, to netip.AddrPort, timeout time.Duration) error {
	err := unix.Connect(fd, sockaddr(to))
	if !errors.Is(err, unix.EINTR) {
		return err
	}
	// A signal has come; the attempt goes on without us.
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
	for begin := time.Now(); ; {
		left := timeout - time.Since(begin)
		if left <= 0 {
			return unix.ETIMEDOUT
		}
		n, err := unix.Poll(fds, int(left.Milliseconds())+1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if n > 0 {
			break
		}
	}
	errno, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
	if err != nil || errno == 0 {
		return err
	}
	return unix.Errno(errno)
}

// Read reads as io.Reader wants it. A peer that is silent for too long is os.ErrDeadlineExceeded.
func (c conn) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(c.fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return 0, os.ErrDeadlineExceeded
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// Write writes as io.Writer wants it. A peer that reads nothing for too long is os.ErrDeadlineExceeded.
func (c conn) Write(b []byte) (int, error) {
	done := 0
	for done < len(b) {
		n, err := unix.SendmsgN(c.fd, b[done:], nil, nil, unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EAGAIN):
			return done, os.ErrDeadlineExceeded
		case err != nil:
			return done, err
		}
		done += n
	}
	return done, nil
}

// wake ends whatever another goroutine waits for.
func (c conn) wake() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

// finish says that nothing more will be sent.
func (c conn) finish() error { return unix.Shutdown(c.fd, unix.SHUT_WR) }

func (c conn) close() { _ = unix.Close(c.fd) }

// inode is the number by which the kernel lists the socket.
func (c conn) inode() uint64 {
	var st unix.Stat_t
	if unix.Fstat(c.fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// peer is the address at the other end, invalid if there is none.
func (c conn) peer() netip.AddrPort {
	sa, err := unix.Getpeername(c.fd)
	if err != nil {
		return netip.AddrPort{}
	}
	return addrPort(sa)
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch a := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

// readLine reads up to a newline, one byte at a time, so that nothing of what follows is taken. A longer line than any of
// ours, or the end of time, is an error; what has come by then is returned, too.
func readLine(r io.Reader, until time.Time) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < helloMax; {
		n, err := r.Read(b)
		if n > 0 && b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[:n]...)
		if err != nil {
			return string(line), err
		}
		if time.Now().After(until) {
			return string(line), os.ErrDeadlineExceeded
		}
	}
	return string(line), errLine
}

var errLine = errors.New("no line of a server of ours")
