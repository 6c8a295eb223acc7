// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside is what tests/fault runs in a guest that has our module. Anywhere else its tests are skipped.
package inside

import (
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// guests is made by tests/fault only, in its guests.
const guests guest.Marker = "/run/smckit-fault"

func smcSocket(addr netip.AddrPort) (fd int, sa unix.Sockaddr, err error) {
	proto, sa := guest.Sockaddr(addr)
	fd, err = unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	return fd, sa, err
}

// smcListen opens a listener.
func smcListen(addr netip.AddrPort, backlog int) (int, error) {
	fd, sa, err := smcSocket(addr)
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

// smcConnect connects, blocking, for no longer than d. The socket is open in any case.
func smcConnect(addr netip.AddrPort, d time.Duration) (int, error) {
	fd, sa, err := smcSocket(addr)
	if err != nil {
		return -1, err
	}
	tv := unix.NsecToTimeval(int64(d))
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return fd, err
	}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
		return fd, err
	}
	err = unix.Connect(fd, sa)
	for errors.Is(err, unix.EINTR) { // the runtime's signals; the connection goes on
		err = unix.Connect(fd, sa)
	}
	return fd, err
}

// readFull reads exactly so many bytes.
func readFull(fd, n int) ([]byte, error) {
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

// writeAll writes all of b.
func writeAll(fd int, b []byte) error {
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

// ask connects to an echo, sends something, and wants it back.
func ask(addr netip.AddrPort, text string, d time.Duration) error {
	fd, err := smcConnect(addr, d)
	if fd >= 0 {
		defer unix.Close(fd)
	}
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if err := writeAll(fd, []byte(text)); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	got, err := readFull(fd, len(text))
	if err != nil || string(got) != text {
		return fmt.Errorf("sent %q, got %q: %w", text, got, err)
	}
	return nil
}

// echo is a server that sends back what it gets, and remembers who came.
type echo struct {
	fd   int
	done chan struct{}
	wg   sync.WaitGroup

	mu   sync.Mutex
	came map[netip.Addr]int
	open map[*os.File]bool
}

func newEcho(t *testing.T, addr netip.AddrPort, backlog int) *echo {
	t.Helper()
	fd, err := smcListen(addr, backlog)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, fd)
}

// serve has a listener be an echo's, which closes it in the end.
func serve(t *testing.T, fd int) *echo {
	e := &echo{fd: fd, done: make(chan struct{}), came: map[netip.Addr]int{}, open: map[*os.File]bool{}}
	go e.serve(t)
	return e
}

func (e *echo) serve(t *testing.T) {
	defer close(e.done)
	for {
		fd, sa, err := unix.Accept4(e.fd, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if errors.Is(err, unix.EINVAL) { // shut down by close
			return
		}
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		conn := os.NewFile(uintptr(fd), "smc")
		e.mu.Lock()
		e.came[addrOf(sa)]++
		e.open[conn] = true
		e.mu.Unlock()
		e.wg.Go(func() {
			// Without the shortcuts of io.Copy, which need not be there for such sockets. Its error is the peer's.
			_, _ = io.Copy(struct{ io.Writer }{conn}, struct{ io.Reader }{conn})
			e.mu.Lock()
			delete(e.open, conn)
			e.mu.Unlock()
			conn.Close()
		})
	}
}

// accepted is how many connections from an address the application has seen.
func (e *echo) accepted(addr netip.Addr) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.came[addr]
}

// abandon ends the connections that there are. Return: how many.
func (e *echo) abandon(t *testing.T) int {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for conn := range e.open {
		if err := conn.SetDeadline(time.Now()); err != nil {
			t.Error(err)
		}
	}
	return len(e.open)
}

// close ends the server, and waits for its connections to end.
func (e *echo) close(t *testing.T) {
	t.Helper()
	if err := unix.Shutdown(e.fd, unix.SHUT_RDWR); err != nil {
		t.Error(err)
	}
	<-e.done
	unix.Close(e.fd)
	e.wg.Wait()
}

func addrOf(sa unix.Sockaddr) netip.Addr {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrFrom4(sa.Addr)
	case *unix.SockaddrInet6:
		return netip.AddrFrom16(sa.Addr).Unmap()
	default:
		return netip.Addr{}
	}
}
