// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"net/rpc"
	"os"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// End is the server's end of connections, which follows the commands of the client's end.
type End struct {
	listener, conn int
	technology     string
}

// Call is a system call on the connection, or a wait for something there.
type Call struct {
	N, Flags int
}

// Answer is the result of a call.
type Answer struct {
	N   int
	Err unix.Errno
}

func answer(n int, err error) Answer {
	var errno unix.Errno
	errors.As(err, &errno)
	return Answer{n, errno}
}

// TestParameters checks the parameters of the other tests.
func TestParameters(t *testing.T) {
	guests.Need(t)
	parameters(t)
}

// serving is a file that exists when a client may connect.
const serving = "/run/counters-serving"

// TestServer serves one client until it disconnects.
func TestServer(t *testing.T) {
	guests.Need(t)
	if os.Getenv("SMCKIT_COUNTERS") == "" {
		t.Skip("tests/counters starts this")
	}
	p := parameters(t)
	l, err := net.Listen("tcp4", netip.AddrPortFrom(p.to, controlPort).String())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.WriteFile(serving, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := rpc.NewServer()
	if err := s.Register(&End{technology: p.technology}); err != nil {
		t.Fatal(err)
	}
	s.ServeConn(c)
}

// Listen makes a listener for one connection.
func (e *End) Listen(to netip.AddrPort, a *Answer) error {
	proto, sa := guest.Sockaddr(to)
	fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	if err == nil {
		err = errors.Join(limit(fd), unix.Bind(fd, sa), unix.Listen(fd, 1))
	}
	e.listener = fd
	*a = answer(0, err)
	return nil
}

// Accept takes the connection.
func (e *End) Accept(_ Call, a *Answer) error {
	fd, _, err := unix.Accept4(e.listener, unix.SOCK_CLOEXEC)
	e.conn = fd
	if err == nil {
		err = limit(fd)
	}
	*a = answer(0, errors.Join(err, unix.Close(e.listener)))
	return nil
}

// Recv receives at most N bytes.
func (e *End) Recv(c Call, a *Answer) error {
	n, _, err := unix.Recvfrom(e.conn, make([]byte, c.N), c.Flags)
	*a = answer(n, err)
	return nil
}

// RecvAll receives N bytes, in any number of calls.
func (e *End) RecvAll(c Call, a *Answer) error {
	b := make([]byte, c.N)
	for a.N < c.N {
		n, _, err := unix.Recvfrom(e.conn, b, 0)
		if err != nil || n == 0 {
			*a = answer(a.N, err)
			return nil
		}
		a.N += n
	}
	return nil
}

// Unread asks how many bytes can be read.
func (e *End) Unread(_ Call, a *Answer) error {
	*a = answer(unix.IoctlGetInt(e.conn, unix.SIOCINQ))
	return nil
}

// Ready waits for the events in Flags.
func (e *End) Ready(c Call, a *Answer) error {
	*a = answer(0, ready(e.conn, int16(c.Flags)))
	return nil
}

// Splice moves N bytes to a pipe.
func (e *End) Splice(c Call, a *Answer) error {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(fds[0])
	defer unix.Close(fds[1])
	n, err := unix.Splice(e.conn, nil, fds[1], nil, c.N, unix.SPLICE_F_NONBLOCK)
	if err == nil {
		_, err = unix.Read(fds[0], make([]byte, c.N))
	}
	*a = answer(int(n), err)
	return nil
}

// Close closes the connection.
func (e *End) Close(_ Call, a *Answer) error {
	*a = answer(0, unix.Close(e.conn))
	return nil
}

// Shell runs a script.
func (e *End) Shell(script string, _ *Answer) error {
	return run(script)
}

// Stats reads the counters of the server's kernel, as JSON.
func (e *End) Stats(_ Call, b *[]byte) error {
	s, err := stats(e.technology)
	if err != nil {
		return err
	}
	*b, err = json.Marshal(s)
	return err
}

// ready waits until poll() finds one of the events.
func ready(fd int, events int16) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, int(waitLimit/time.Millisecond))
		switch {
		case errors.Is(err, unix.EINTR):
		case err == nil && n == 0:
			return unix.ETIMEDOUT
		default:
			return err
		}
	}
}

// stats reads the counters of this kernel.
func stats(technology string) (netlinksmc.TechStats, error) {
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	c, err := netlinksmc.New()
	if err != nil {
		return netlinksmc.TechStats{}, err
	}
	defer c.Close()
	s, err := c.Stats(ctx)
	if err != nil {
		return netlinksmc.TechStats{}, err
	}
	tech := s.SMCR
	if technology == "SMC-D" {
		tech = s.SMCD
	}
	// Not counters.
	tech.RxBufUsage, tech.TxBufUsage = netlinksmc.Optional[uint64]{}, netlinksmc.Optional[uint64]{}
	return tech, nil
}
