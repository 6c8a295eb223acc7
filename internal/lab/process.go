// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"sync"
	"time"

	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

// Process is a running program.
type Process struct {
	host    *Host
	name    string
	session *proto.Session
	out     bytes.Buffer
	errOut  bytes.Buffer
	copies  sync.WaitGroup
	done    chan struct{} // closed when all output has been copied
	copyErr error         // of a Cmd's writer; valid after done
}

// open starts a session and the goroutines that copy its streams.
func (h *Host) open(r proto.Request, cmd Cmd) (*Process, error) {
	if len(cmd.Argv) == 0 {
		return nil, errors.New("no program named")
	}
	s, err := h.conn.Open(r)
	if err != nil {
		return nil, h.lost(err)
	}
	p := &Process{host: h, name: cmd.Argv[0], session: s, done: make(chan struct{})}
	go p.feed(cmd.Stdin)
	var outErr, errErr error
	p.copies.Go(func() { outErr = p.copyOut(proto.Stdout, cmd.Stdout, &p.out) })
	p.copies.Go(func() { errErr = p.copyOut(proto.Stderr, cmd.Stderr, &p.errOut) })
	go func() {
		p.copies.Wait()
		<-s.Done()
		p.copyErr = errors.Join(outErr, errErr)
		close(p.done)
	}()
	return p, nil
}

// feed sends the input to the program.
func (p *Process) feed(in io.Reader) {
	w := p.session.Writer(proto.Stdin)
	if in != nil {
		// It is no error if the program does not read all of its input.
		_, _ = io.Copy(w, in)
	}
	_ = w.Close()
}

// copyOut copies a stream to w, or to buf if there is no w. If w fails, it continues reading, so that the program does not
// hang, and sends the program the signal of a broken pipe.
func (p *Process) copyOut(stream int, w io.Writer, buf *bytes.Buffer) error {
	r := p.session.Reader(stream)
	if w == nil {
		w = buf
	}
	_, err := io.Copy(w, r)
	if err == nil || p.host.conn.Err() != nil {
		return nil // Wait reports the loss of the guest
	}
	_ = p.Signal(unix.SIGPIPE)
	_, _ = io.Copy(io.Discard, r)
	return err
}

// Signal sends a signal to the program and its children.
func (p *Process) Signal(sig unix.Signal) error { return p.session.Signal(int(sig)) }

// Resize sets the size of the program's terminal.
func (p *Process) Resize(size proto.Size) error { return p.session.Resize(size) }

// Wait waits for the program's end. When ctx ends first, the program is killed and the error is ctx's.
func (p *Process) Wait(ctx context.Context) (Result, error) {
	var stopped error
	select {
	case <-p.done:
	case <-ctx.Done():
		stopped = ctx.Err()
		_ = p.Signal(unix.SIGKILL)
		select {
		case <-p.done:
		case <-time.After(Scale(5 * time.Second)):
			// Goroutines may still write to the buffers, so leave them out of the result.
			return Result{Code: -1}, p.error(fmt.Errorf("%w, and %w", stopped, errNoAnswer))
		}
	}
	r := Result{Stdout: p.out.String(), Stderr: p.errOut.String()}
	exit, err := p.session.Exit()
	switch {
	case err != nil:
		r.Code = -1
		if stopped == nil {
			stopped = p.host.lost(err)
		}
	case exit.Error != "":
		r.Code = -1
		return r, p.error(guestError(exit.Error))
	case exit.Signal != 0:
		r.Code = 128 + exit.Signal
	default:
		r.Code = exit.Code
	}
	if stopped != nil {
		return r, p.error(stopped)
	}
	if p.copyErr != nil {
		return r, p.error(p.copyErr)
	}
	return r, nil
}

func (p *Process) error(err error) error {
	return fmt.Errorf("%s on guest %s: %w", p.name, p.host.Name, err)
}

// guestError is an error text from the agent. errors.Is recognises the errno in it.
type guestError string

func (e guestError) Error() string { return string(e) }

func (e guestError) Is(target error) bool {
	return target == fs.ErrNotExist && strings.Contains(string(e), unix.ENOENT.Error())
}
