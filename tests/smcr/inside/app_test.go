// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside is what tests/smcr runs in a guest that has our module, with peers in user space. Anywhere else its tests
// are skipped.
package inside

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// app is an application at our end of a connection, which sends back what it gets.
type app struct {
	done  chan struct{}
	err   error // why it ended; nil for the end of the stream
	wrote atomic.Int64
}

// counter counts what is written.
type counter struct {
	io.Writer
	n *atomic.Int64
}

func (c counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n.Add(int64(n))
	return n, err
}

// run does it until the connection ends.
func (a *app) run(fd int) {
	defer close(a.done)
	conn := os.NewFile(uintptr(fd), "smc")
	defer conn.Close()
	// Without the shortcuts of io.Copy, which need not be there for such sockets.
	_, a.err = io.Copy(counter{conn, &a.wrote}, struct{ io.Reader }{conn})
}

// wait waits until it has ended.
func (a *app) wait(ctx context.Context) error {
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-a.done:
		return nil
	default:
		return fmt.Errorf("the application goes on: %w", ctx.Err())
	}
}

// echo is a server of such applications.
type echo struct {
	fd   int
	done chan struct{}
	mu   sync.Mutex
	apps map[netip.AddrPort]*app
}

func socket(addr netip.AddrPort) (fd int, sa unix.Sockaddr, err error) {
	proto, sa := guest.Sockaddr(addr)
	fd, err = unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	return fd, sa, err
}

func newEcho(t testing.TB, addr netip.AddrPort) *echo {
	t.Helper()
	fd, sa, err := socket(addr)
	if err == nil {
		err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1), unix.Bind(fd, sa), unix.Listen(fd, 1024))
	}
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{fd: fd, done: make(chan struct{}), apps: map[netip.AddrPort]*app{}}
	go e.serve(t)
	return e
}

func (e *echo) serve(t testing.TB) {
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
		a := &app{done: make(chan struct{})}
		from := sa.(*unix.SockaddrInet4)
		e.mu.Lock()
		e.apps[netip.AddrPortFrom(netip.AddrFrom4(from.Addr), uint16(from.Port))] = a
		e.mu.Unlock()
		go a.run(fd)
	}
}

// app is the application that serves a peer, nil if there is none yet.
func (e *echo) app(of netip.AddrPort) *app {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.apps[of]
}

// close ends the server, and waits for its applications to end.
func (e *echo) close(t testing.TB) {
	t.Helper()
	if err := unix.Shutdown(e.fd, unix.SHUT_RDWR); err != nil {
		t.Error(err)
	}
	<-e.done
	unix.Close(e.fd)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for of, a := range e.apps {
		if err := a.wait(ctx); err != nil {
			t.Errorf("%v: %v", of, err)
		}
	}
}

// connect has an application connect to a peer, and then do something: if that is nil, as the service does. What it is told by
// connect() is told here.
func connect(to netip.AddrPort, use func(a *app, fd int)) (a *app, connected <-chan error) {
	if use == nil {
		use = (*app).run
	}
	a = &app{done: make(chan struct{})}
	result := make(chan error, 1)
	go func() {
		fd, err := connectFor(to, patience)
		result <- err
		if err != nil {
			a.err = err
			close(a.done)
			return
		}
		use(a, fd)
	}()
	return a, result
}

// connectFor connects, blocking, for no longer than d. Return: a socket that does not block, if there is no error.
func connectFor(addr netip.AddrPort, d time.Duration) (int, error) {
	fd, sa, err := socket(addr)
	if err != nil {
		return -1, err
	}
	tv := unix.NsecToTimeval(int64(d))
	err = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv)
	if err == nil {
		err = unix.Connect(fd, sa)
		for errors.Is(err, unix.EINTR) { // the runtime's signals; the connection goes on
			err = unix.Connect(fd, sa)
		}
	}
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	if err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("connect: %w", err)
	}
	return fd, nil
}
