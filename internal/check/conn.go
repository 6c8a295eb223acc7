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

// conn is a connection on a blocking socket. Package net does not support AF_SMC sockets. Blocking calls with the kernel's own
// timeouts work correctly with every AF_SMC module.
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

// setTimeout limits the time that one call may block.
func setTimeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	return errors.Join(
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
}

// connect connects a socket. It gives up after the timeout.
func connect(fd int, to netip.AddrPort, timeout time.Duration) error {
	err := unix.Connect(fd, sockaddr(to))
	if !errors.Is(err, unix.EINTR) {
		return err
	}
	// A signal interrupted the call, but the kernel still connects the socket.
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

// Read implements io.Reader. It returns os.ErrDeadlineExceeded if the peer sends nothing until the timeout.
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

// Write implements io.Writer. It returns os.ErrDeadlineExceeded if the peer reads nothing until the timeout.
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

// wake shuts the connection down, which ends calls of other goroutines that block on it.
func (c conn) wake() { _ = unix.Shutdown(c.fd, unix.SHUT_RDWR) }

// finish shuts down the sending direction.
func (c conn) finish() error { return unix.Shutdown(c.fd, unix.SHUT_WR) }

func (c conn) close() { _ = unix.Close(c.fd) }

// inode returns the inode of the socket, by which sock_diag identifies it.
func (c conn) inode() uint64 {
	var st unix.Stat_t
	if unix.Fstat(c.fd, &st) != nil {
		return 0
	}
	return st.Ino
}

// peer returns the address of the peer, or an invalid one if the socket is not connected.
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

// readLine reads up to a newline, one byte at a time, so that it consumes nothing after the line. It fails if the line is
// longer than any line of ours, or if the deadline has passed, and returns the text read so far with the error.
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
