// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// App is an application at our end of a connection, which sends back what it gets.
type App struct {
	Done  chan struct{} // closed when the application ends
	Err   error         // why it has ended; nil for the end of the stream
	Wrote atomic.Int64  // bytes

	conn *os.File
}

// NewApp makes an application that does not run yet.
func NewApp() *App { return &App{Done: make(chan struct{})} }

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

// Run sends back what a socket receives, until the connection ends.
func (a *App) Run(fd int) {
	a.conn = os.NewFile(uintptr(fd), "smc")
	a.run()
}

func (a *App) run() {
	defer close(a.Done)
	defer a.conn.Close()
	// Without the shortcuts of io.Copy, which such sockets may lack.
	_, a.Err = io.Copy(counter{a.conn, &a.Wrote}, struct{ io.Reader }{a.conn})
}

// Wait waits until the application has ended.
func (a *App) Wait(ctx context.Context) error {
	select {
	case <-a.Done:
		return nil
	case <-ctx.Done():
	}
	select {
	case <-a.Done:
		return nil
	default:
		return fmt.Errorf("the application goes on: %w", ctx.Err())
	}
}

// Echo is a server that runs an App for each connection.
type Echo struct {
	FD int // the listener

	done     chan struct{} // closed when it accepts no more
	mu       sync.Mutex
	apps     map[netip.AddrPort]*App
	accepted map[netip.Addr]int
	running  map[*App]netip.AddrPort
}

// NewEcho starts a server of AF_SMC.
func NewEcho(t testing.TB, addr netip.AddrPort, backlog int) *Echo {
	t.Helper()
	fd, err := Listen(addr, backlog)
	if err != nil {
		t.Fatal(err)
	}
	return ServeEcho(t, fd)
}

// ServeEcho makes a server of a listener, which the server closes in the end.
func ServeEcho(t testing.TB, fd int) *Echo {
	e := &Echo{
		FD: fd, done: make(chan struct{}),
		apps: map[netip.AddrPort]*App{}, accepted: map[netip.Addr]int{}, running: map[*App]netip.AddrPort{},
	}
	go e.serve(t)
	return e
}

func (e *Echo) serve(t testing.TB) {
	defer close(e.done)
	for {
		fd, sa, err := unix.Accept4(e.FD, unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if errors.Is(err, unix.EINVAL) { // Shutdown
			return
		}
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		a, from := NewApp(), addrPort(sa)
		a.conn = os.NewFile(uintptr(fd), "smc")
		e.mu.Lock()
		e.apps[from] = a
		e.accepted[from.Addr()]++
		e.running[a] = from
		e.mu.Unlock()
		go func() {
			a.run()
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.running, a)
		}()
	}
}

// App returns the application that serves a peer, nil if there is none yet.
func (e *Echo) App(of netip.AddrPort) *App {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.apps[of]
}

// Accepted returns how many connections from an address accept() has returned.
func (e *Echo) Accepted(addr netip.Addr) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.accepted[addr]
}

// Abandon ends the existing connections, and returns their number.
func (e *Echo) Abandon(t testing.TB) int {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	for a := range e.running {
		if err := a.conn.SetDeadline(time.Now()); err != nil && !errors.Is(err, os.ErrClosed) {
			t.Error(err)
		}
	}
	return len(e.running)
}

// Shutdown closes the listener. Existing connections continue.
func (e *Echo) Shutdown(t testing.TB) {
	t.Helper()
	if err := unix.Shutdown(e.FD, unix.SHUT_RDWR); err != nil {
		t.Error(err)
	}
	<-e.done
	unix.Close(e.FD)
}

// Wait waits until all connections have ended, which must not take longer than d.
func (e *Echo) Wait(t testing.TB, d time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	e.mu.Lock()
	running := maps.Clone(e.running)
	e.mu.Unlock()
	for a, of := range running {
		if err := a.Wait(ctx); err != nil {
			t.Errorf("%v: %v", of, err)
		}
	}
}

// Close closes the listener, and waits for its connections to end.
func (e *Echo) Close(t testing.TB) {
	t.Helper()
	e.Shutdown(t)
	e.Wait(t, 100*time.Second)
}

func addrPort(sa unix.Sockaddr) netip.AddrPort {
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	default:
		return netip.AddrPort{}
	}
}
