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

	"golang.org/x/sys/unix"
)

// DefaultPort is where servers listen if nobody says otherwise.
const DefaultPort = 37373

// Limits of a server, so that strangers cannot use it up.
const (
	maxClients    = 16
	clientSeconds = 60
)

// Server answers the tests of clients.
type Server struct {
	// AFSMC is false for a server that has TCP only, and says so.
	AFSMC bool
	// Port is where it listens.
	Port uint16
	// Inspect tells what carries a connection, function Inspect if nil.
	Inspect Inspector
	// Served is told of each client that has said who it is, and what carried its connection; it may be nil.
	Served func(client netip.AddrPort, c Carrier, err error)
	// Patience is how long a client may be silent, and how long its greeting may take altogether; 10 s if zero.
	Patience time.Duration

	fd int
	// accept returns the next connection. Tests have another.
	accept func() (int, error)
	places places
}

// Listen makes a server that listens on addr, or, with a port that is taken, on one of the next 100. Without AF_SMC it
// listens on TCP, so that clients can be told.
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
	// A connection that was there when poll(2) looked may have gone when accept(2) does.
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
			return fmt.Errorf("listening on %s: %w", netip.AddrPortFrom(addr.Addr(), s.Port), err)
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

// Close ends listening.
func (s *Server) Close() error { return unix.Close(s.fd) }

// Serve serves clients until ctx ends, and returns its error, or what is wrong with the listening socket.
func (s *Server) Serve(ctx context.Context) error {
	if s.Patience == 0 {
		s.Patience = 10 * time.Second
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
			// It is the connection that has failed (a peer that has reset it, a filter, the network), or there is too little of
			// something: neither is a reason for the server to end. Should it go on, pauses become longer.
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	}
}

// admit serves a connection if there is a place for it.
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

// serve answers a client: a line for its line, and then an echo.
func (s *Server) serve(ctx context.Context, p *place) {
	c := p.conn
	if setTimeout(c.fd, s.Patience) != nil {
		return
	}
	// The timeout of the socket is for each byte, this one for all of the greeting.
	slow := time.AfterFunc(s.Patience, p.wake)
	said, err := greeting(c)
	if !slow.Stop() {
		return
	}
	defer time.AfterFunc(clientSeconds*time.Second, p.wake).Stop()
	until := time.Now().Add(clientSeconds * time.Second)
	if string(said) != clientLine {
		// Somebody else's client, which may want an echo.
		if _, werr := c.Write(said); werr == nil && err == nil {
			echo(c, until)
		}
		return
	}
	s.places.keep(p)
	h := Hello{AFSMC: s.AFSMC, Carrier: Carrier{Mode: "TCP"}}
	if s.AFSMC {
		h.Carrier, err = s.Inspect(ctx, c.inode())
	}
	if s.Served != nil {
		s.Served(c.peer(), h.Carrier, err)
	}
	if _, err := io.WriteString(c, h.String()+"\n"); err == nil {
		echo(c, until)
	}
}

// greeting reads what a client says, up to the end of a line of ours, or where that says something else.
func greeting(c conn) ([]byte, error) {
	var said []byte
	for b := make([]byte, 1); len(said) < len(clientLine); {
		if _, err := c.Read(b); err != nil {
			return said, err
		}
		said = append(said, b[0])
		if !strings.HasPrefix(clientLine, string(said)) {
			break
		}
	}
	return said, nil
}

// echo returns what comes, until the client's end, or until it has been enough.
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
