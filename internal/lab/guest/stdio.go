// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

// stdio is the agent's and the child's ends of a process's standard streams: three pipes, or one terminal, which has
// no standard error of its own.
type stdio struct {
	in, out, err *os.File    // the agent's
	kid          [3]*os.File // the child's
}

func newStdio(tty *proto.Size) (*stdio, error) {
	if tty != nil {
		return newTTY(*tty)
	}
	s := new(stdio)
	var e error
	if s.kid[0], s.in, e = os.Pipe(); e != nil {
		return nil, e
	}
	if s.out, s.kid[1], e = os.Pipe(); e != nil {
		s.close()
		return nil, e
	}
	if s.err, s.kid[2], e = os.Pipe(); e != nil {
		s.close()
		return nil, e
	}
	return s, nil
}

func newTTY(size proto.Size) (*stdio, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	var n uint32
	err = control(master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		v, err := unix.IoctlGetUint32(fd, unix.TIOCGPTN)
		n = v
		return err
	})
	if err == nil {
		err = setSize(master, size)
	}
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("terminal: %w", err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		master.Close()
		return nil, err
	}
	return &stdio{in: master, out: master, kid: [3]*os.File{slave, slave, slave}}, nil
}

// control runs f on the descriptor without making f blocking, as (*os.File).Fd would.
func control(file *os.File, f func(fd int) error) error {
	c, err := file.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := c.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return ferr
}

func setSize(tty *os.File, size proto.Size) error {
	return control(tty, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Cols})
	})
}

func (s *stdio) child() []uintptr {
	var fds []uintptr
	for _, f := range s.kid {
		fds = append(fds, f.Fd())
	}
	return fds
}

func (s *stdio) closeChild() {
	for _, f := range s.kid {
		if f != nil {
			f.Close()
		}
	}
}

// copyOut forwards the output of the process until no process can write any more, or until expire ends the reading. The output
// of the process itself is complete then, however slowly it is read.
func copyOut(w io.WriteCloser, f *os.File) {
	defer w.Close()
	buf := make([]byte, 64<<10)
	_, err := io.CopyBuffer(onlyWriter{w}, onlyReader{f}, buf)
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}
	_ = f.SetReadDeadline(time.Time{})
	// The pipe cannot have contained more than this when the process ended.
	for left := 1 << 20; left > 0; {
		var waiting int
		err := control(f, func(fd int) (err error) {
			waiting, err = unix.IoctlGetInt(fd, unix.TIOCINQ)
			return err
		})
		if err != nil || waiting == 0 {
			return
		}
		n, err := f.Read(buf)
		if n > 0 {
			_, err = w.Write(buf[:n])
		}
		if err != nil {
			return
		}
		left -= n
	}
}

// Hide all methods except Read and Write, because io.Copy tries optimisations that need a pipe or a socket at the other end.
type (
	onlyReader struct{ io.Reader }
	onlyWriter struct{ io.Writer }
)

// close is safe in any state; the error of a second close has no meaning.
func (s *stdio) close() {
	s.closeChild()
	for _, f := range []*os.File{s.in, s.out, s.err} {
		if f != nil {
			f.Close()
		}
	}
}

// expire ends reading after d at the latest.
func (s *stdio) expire(d time.Duration) {
	t := time.Now().Add(d)
	for _, f := range []*os.File{s.out, s.err} {
		if f != nil {
			_ = f.SetReadDeadline(t)
		}
	}
}
