// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Socket opens a socket of AF_SMC for an address. It returns the address as system calls want it, too.
func Socket(addr netip.AddrPort) (fd int, sa unix.Sockaddr, err error) {
	proto, sa := Sockaddr(addr)
	fd, err = unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	return fd, sa, err
}

// Listen opens a listener of AF_SMC.
func Listen(addr netip.AddrPort, backlog int) (int, error) {
	fd, sa, err := Socket(addr)
	if err != nil {
		return -1, err
	}
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1),
		unix.Bind(fd, sa), unix.Listen(fd, backlog))
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return fd, nil
}

// Connect opens a socket of AF_SMC and connects it, blocking, for no longer than d. The caller closes the socket even if
// connect() has failed: it is -1 if there is none.
func Connect(addr netip.AddrPort, d time.Duration) (int, error) {
	fd, sa, err := Socket(addr)
	if err != nil {
		return -1, err
	}
	if err := Timeout(fd, d); err != nil {
		return fd, err
	}
	return fd, ConnectSocket(fd, sa)
}

// ConnectSocket connects a socket. If a signal of Go's runtime interrupts the call, the attempt goes on.
func ConnectSocket(fd int, sa unix.Sockaddr) error {
	for {
		if err := unix.Connect(fd, sa); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Timeout limits how long calls on a socket block.
func Timeout(fd int, d time.Duration) error {
	tv := unix.NsecToTimeval(int64(d))
	return errors.Join(unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv))
}

// Accept takes the next connection of a listener that has not been aborted.
func Accept(listener int) (int, error) {
	for {
		fd, _, err := unix.Accept4(listener, unix.SOCK_CLOEXEC)
		if !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ECONNABORTED) {
			return fd, err
		}
	}
}

// Abort closes a socket with a reset, so that neither end waits for the other.
func Abort(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	unix.Close(fd)
}

// Disconnect ends the connection of a socket by connect() to AF_UNSPEC. The socket may connect again.
func Disconnect(fd int) error {
	sa := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	_, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
	if errno != 0 {
		return errno
	}
	return nil
}

// ReadFull reads exactly n bytes.
func ReadFull(fd, n int) ([]byte, error) {
	buf := make([]byte, n)
	for at := 0; at < n; {
		m, err := unix.Read(fd, buf[at:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && m == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return buf[:at], err
		}
		at += m
	}
	return buf, nil
}

// WriteAll writes all of b.
func WriteAll(fd int, b []byte) error {
	for len(b) > 0 {
		n, err := unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Ask connects to an echo, sends a text, and checks that it comes back. Each call blocks for no longer than d.
func Ask(addr netip.AddrPort, text string, d time.Duration) error {
	fd, err := Connect(addr, d)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := WriteAll(fd, []byte(text)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got, err := ReadFull(fd, len(text))
	if err != nil || string(got) != text {
		return fmt.Errorf("sent %q, got %q: %w", text, got, err)
	}
	return nil
}

// RaiseFiles lets this process have n open files.
func RaiseFiles(t testing.TB, n uint64) {
	t.Helper()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: n}); err != nil {
		t.Fatal(err)
	}
}
