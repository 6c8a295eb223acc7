// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/remedy"
	"golang.org/x/sys/unix"
)

// DefaultPort is the port of servers unless the user chooses another one.
const DefaultPort = 37373

// Limits of a server, so that other programs cannot exhaust it.
const (
	maxClients    = 16
	clientSeconds = 60
)

// Server answers the tests of clients.
type Server struct {
	// AFSMC is false for a server that listens on a TCP socket because AF_SMC is not available. The server reports this to its
	// clients.
	AFSMC bool
	// Port is the port on which the server listens.
	Port uint16
	// Inspect finds out the transport of a connection; nil means the function Inspect.
	Inspect Inspector
	// Served, unless it is nil, is called for each client that has sent clientLine, with the transport of its connection.
	Served func(client netip.AddrPort, c Transport, err error)
	// Timeout limits how long a client may send nothing, and how long its whole first line may take; 0 means 10 s.
	Timeout time.Duration

	fd int
	// accept returns the next connection. Tests replace it.
	accept func() (int, error)
	places places
}

// Listen makes a server that listens on addr or, if the port is taken, on one of the next 100. Without AF_SMC it listens on
// TCP, so that it can report this to its clients.
func Listen(addr netip.AddrPort) (*Server, error) {
	s, err := listen(addr, true)
	if errors.Is(err, errNoSocket) {
		return listen(addr, false)
	}
	return s, err
}

var errNoSocket = errors.New("no socket to listen on")

func listen(addr netip.AddrPort, smc bool) (*Server, error) {
	s := &Server{AFSMC: smc, Port: addr.Port()}
	fd, err := newSocket(smc, addr.Addr())
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoSocket, err)
	}
	s.fd = fd
	// accept(2) must not block if a connection that poll(2) reported has been closed meanwhile.
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	if err := s.bind(addr); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return s, nil
}

func (s *Server) bind(addr netip.AddrPort) error {
	if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	for tries := 0; ; tries++ {
		err := unix.Bind(s.fd, sockaddr(netip.AddrPortFrom(addr.Addr(), s.Port)))
		if err == nil {
			err = unix.Listen(s.fd, maxClients)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EADDRINUSE) || tries == 100 || s.Port == 65535 || s.Port == 0 {
			return bindError(netip.AddrPortFrom(addr.Addr(), s.Port), err)
		}
		s.Port++
	}
	sa, err := unix.Getsockname(s.fd)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	s.Port = addrPort(sa).Port()
	return nil
}

// bindError returns the error that the kernel does not let the server listen on addr.
func bindError(addr netip.AddrPort, err error) error {
	if errors.Is(err, unix.EACCES) {
		return remedy.Errorf("run as root, or use a port from 1024 on", "listening on %s: %w", addr, err)
	}
	return fmt.Errorf("listening on %s: %w", addr, err)
}

// Close ends listening.
func (s *Server) Close() error { return unix.Close(s.fd) }

// Serve serves clients until ctx ends and returns the error of ctx, or until the listening socket fails and returns that error.
func (s *Server) Serve(ctx context.Context) error {
	if s.Timeout == 0 {
		s.Timeout = 10 * time.Second
	}
	if s.Inspect == nil {
		s.Inspect = Inspect
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	defer context.AfterFunc(ctx, func() { _ = w.Close() })()
	if s.accept == nil {
		s.accept = func() (int, error) {
			fd, _, err := unix.Accept4(s.fd, unix.SOCK_CLOEXEC)
			return fd, err
		}
	}
	defer s.places.end()
	fds := []unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(r.Fd()), Events: unix.POLLIN}}
	for pause := time.Duration(0); ; {
		if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if fds[0].Revents == 0 {
			continue
		}
		fd, err := s.accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(ctx, conn{fd})
		case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSOCK), errors.Is(err, unix.EFAULT):
			return fmt.Errorf("accepting: %w", err)
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		default:
			// Either the connection has failed (the peer has reset it, or a filter or the network broke it), or a resource is
			// exhausted. Neither is a reason to end the server. If it repeats, wait longer each time.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// admit serves a connection if a place is free.
func (s *Server) admit(ctx context.Context, c conn) {
	p := s.places.take(c)
	if p == nil {
		c.close()
		return
	}
	go func() {
		defer s.places.leave(p)
		s.serve(ctx, p)
	}()
}

// serve answers the client's line with the server's line, and then echoes.
func (s *Server) serve(ctx context.Context, p *place) {
	c := p.conn
	if setTimeout(c.fd, s.Timeout) != nil {
		return
	}
	// The timeout of the socket applies to each byte, this one to the whole line.
	slow := time.AfterFunc(s.Timeout, p.wake)
	received, err := greeting(c)
	if !slow.Stop() {
		return
	}
	defer time.AfterFunc(clientSeconds*time.Second, p.wake).Stop()
	until := time.Now().Add(clientSeconds * time.Second)
	if string(received) != clientLine {
		// This is another program, which may expect an echo.
		if _, werr := c.Write(received); werr == nil && err == nil {
			echo(c, until)
		}
		return
	}
	s.places.keep(p)
	h := Hello{AFSMC: s.AFSMC, Transport: Transport{Mode: "TCP"}}
	if s.AFSMC {
		h.Transport, err = s.Inspect(ctx, c.inode())
	}
	if s.Served != nil {
		s.Served(c.peer(), h.Transport, err)
	}
	if _, err := io.WriteString(c, h.String()+"\n"); err == nil {
		echo(c, until)
	}
}

// greeting reads the first line of a client. It stops at the first byte that differs from clientLine.
func greeting(c conn) ([]byte, error) {
	var received []byte
	for b := make([]byte, 1); len(received) < len(clientLine); {
		if _, err := c.Read(b); err != nil {
			return received, err
		}
		received = append(received, b[0])
		if !strings.HasPrefix(clientLine, string(received)) {
			break
		}
	}
	return received, nil
}

// echo returns all data to the client until the client closes the connection, or the time is over.
func echo(c conn, until time.Time) {
	b := make([]byte, 64<<10)
	for time.Now().Before(until) {
		n, err := c.Read(b)
		if n > 0 {
			if _, werr := c.Write(b[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
