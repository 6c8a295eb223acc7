// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/smckit/smckit/tests/lab/proto"
	"golang.org/x/sys/unix"
)

// Host is a guest of the lab.
type Host struct {
	// Name is the host's name, "a" for the first.
	Name string
	// Kernel is what it runs.
	Kernel *Kernel

	lab     *Lab
	index   int
	dir     string
	machine *machine
	conn    *proto.Conn
	closer  io.Closer

	mu      sync.Mutex
	next    uint32
	streams map[uint32]*Process
	gone    error // set when the agent is no longer there
}

// Cmd is a program to run in a guest.
type Cmd struct {
	Argv   []string
	Env    []string
	Dir    string
	Stdin  io.Reader
	Stdout io.Writer // nil: collected in Result
	Stderr io.Writer // nil: collected in Result
	// TTY runs the program on a terminal; all its output is then on Stdout.
	TTY *proto.Size
}

// Result is how a program ended, and what it printed where its output was not sent elsewhere.
type Result struct {
	Code   int // exit status; 128 plus its number for a signal, as a shell has it
	Stdout string
	Stderr string
}

// Process is a running program.
type Process struct {
	host   *Host
	stream uint32
	cmd    Cmd
	out    bytes.Buffer
	errOut bytes.Buffer
	done   chan struct{}
	status proto.Status
	err    error
}

func (h *Host) console() string { return filepath.Join(h.dir, "console") }
func (h *Host) socket() string  { return filepath.Join(h.dir, "agent") }

// boot starts the guest and waits until its agent answers.
func (h *Host) boot(ctx context.Context, o Options, initrd string) error {
	l, err := net.Listen("unix", h.socket())
	if err != nil {
		return err
	}
	defer l.Close()
	h.machine, err = startMachine(h.devices(o, h.Kernel, initrd), filepath.Join(h.dir, "emulator"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Scale(30*time.Second))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	go func() {
		select {
		case <-h.machine.done:
			l.Close()
		case <-ctx.Done():
		}
	}()
	conn, err := l.Accept()
	if err != nil {
		return h.bootError(ctx)
	}
	h.conn, h.closer = proto.NewConn(conn), conn
	stopRead := context.AfterFunc(ctx, func() { conn.Close() })
	hello, err := h.conn.Receive()
	if err != nil || hello.Type != proto.Hello {
		return h.bootError(ctx)
	}
	if !stopRead() {
		return h.bootError(ctx)
	}
	go h.receive()
	return nil
}

// bootError says why a guest did not come up, with the end of what it and the emulator have printed.
func (h *Host) bootError(ctx context.Context) error {
	var tail []string
	for _, name := range []string{"emulator", "console"} {
		data, _ := os.ReadFile(filepath.Join(h.dir, name))
		lines := strings.Split(strings.TrimSpace(string(data)), "\n")
		tail = append(tail, lines[max(0, len(lines)-15):]...)
	}
	why := "its agent did not answer"
	if ctx.Err() != nil {
		why = "it took too long: " + ctx.Err().Error()
	}
	return fmt.Errorf("guest %s did not start: %s:\n%s", h.Name, why, strings.Join(tail, "\n"))
}

// receive hands what the agent sends to the programs it belongs to.
func (h *Host) receive() {
	for {
		f, err := h.conn.Receive()
		if err != nil {
			h.lost(err)
			return
		}
		h.mu.Lock()
		p := h.streams[f.Stream]
		if f.Type == proto.Exit {
			delete(h.streams, f.Stream)
		}
		h.mu.Unlock()
		if p != nil {
			p.handle(f)
		}
	}
}

// lost ends all programs of a guest that is no longer there.
func (h *Host) lost(err error) {
	h.mu.Lock()
	h.gone = fmt.Errorf("guest %s is gone: %w", h.Name, err)
	streams := h.streams
	h.streams = nil
	h.mu.Unlock()
	for _, p := range streams {
		p.err = h.gone
		close(p.done)
	}
}

func (p *Process) handle(f proto.Frame) {
	switch f.Type {
	case proto.Stdout:
		_, _ = p.cmd.Stdout.Write(f.Payload)
	case proto.Stderr:
		_, _ = p.cmd.Stderr.Write(f.Payload)
	case proto.Exit:
		if err := json.Unmarshal(f.Payload, &p.status); err != nil {
			p.err = err
		} else if p.status.Error != "" {
			p.err = errors.New(p.status.Error)
		}
		close(p.done)
	}
}

// Start starts a program. Its output is complete when Wait returns.
func (h *Host) Start(cmd Cmd) (*Process, error) {
	p := &Process{host: h, cmd: cmd, done: make(chan struct{})}
	if p.cmd.Stdout == nil {
		p.cmd.Stdout = &p.out
	}
	if p.cmd.Stderr == nil {
		p.cmd.Stderr = &p.errOut
	}
	h.mu.Lock()
	if h.gone != nil {
		defer h.mu.Unlock()
		return nil, h.gone
	}
	h.next++
	p.stream = h.next
	h.streams[p.stream] = p
	h.mu.Unlock()
	env := append([]string{"PATH=" + h.lab.path()}, cmd.Env...)
	open := proto.Command{Argv: cmd.Argv, Env: env, Dir: cmd.Dir, TTY: cmd.TTY}
	if err := h.conn.SendJSON(p.stream, proto.Open, open); err != nil {
		return nil, fmt.Errorf("guest %s: %w", h.Name, err)
	}
	if cmd.Stdin == nil {
		return p, h.conn.Send(proto.Frame{Stream: p.stream, Type: proto.StdinEOF})
	}
	go p.feed()
	return p, nil
}

// feed sends the program its input.
func (p *Process) feed() {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.cmd.Stdin.Read(buf)
		if n > 0 && p.host.conn.Send(proto.Frame{Stream: p.stream, Type: proto.Stdin, Payload: buf[:n]}) != nil {
			return
		}
		if err != nil {
			_ = p.host.conn.Send(proto.Frame{Stream: p.stream, Type: proto.StdinEOF})
			return
		}
	}
}

// Signal sends a signal to the program and what it has started.
func (p *Process) Signal(sig unix.Signal) error {
	return p.host.conn.Send(proto.Frame{Stream: p.stream, Type: proto.Signal, Payload: []byte{byte(sig)}})
}

// Resize tells the program's terminal its new size.
func (p *Process) Resize(size proto.Size) error {
	return p.host.conn.SendJSON(p.stream, proto.Resize, size)
}

// Wait waits for the program's end. When ctx ends first, the program is killed and the error is ctx's.
func (p *Process) Wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
	case <-ctx.Done():
		_ = p.Signal(unix.SIGKILL)
		select {
		case <-p.done:
		case <-time.After(Scale(5 * time.Second)):
			return Result{Code: -1}, fmt.Errorf("%s on guest %s: %w, and the guest does not react", p.cmd.Argv[0], p.host.Name, ctx.Err())
		}
		if p.err == nil {
			p.err = ctx.Err()
		}
	}
	r := Result{Code: p.status.Code, Stdout: p.out.String(), Stderr: p.errOut.String()}
	if p.status.Signal != 0 {
		r.Code = 128 + p.status.Signal
	}
	if p.err != nil {
		return r, fmt.Errorf("%s on guest %s: %w", p.cmd.Argv[0], p.host.Name, p.err)
	}
	return r, nil
}

// Run runs a program to its end. A program that fails is not an error: see Result.Code.
func (h *Host) Run(ctx context.Context, cmd Cmd) (Result, error) {
	p, err := h.Start(cmd)
	if err != nil {
		return Result{}, err
	}
	return p.Wait(ctx)
}

// Shell runs a shell script that must succeed, and returns what it printed on standard output.
func (h *Host) Shell(ctx context.Context, script string) (string, error) {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/sh", "-euc", script}})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("guest %s: exit status %d of: %s\n%s%s", h.Name, r.Code, script, r.Stdout, r.Stderr)
	}
	return r.Stdout, err
}

// WaitFor runs a shell script again and again until it succeeds: the way to wait for something that announces itself in
// no other way. It gives up with the last failure after a while that is long even under emulation.
func (h *Host) WaitFor(ctx context.Context, script string) error {
	ctx, cancel := context.WithTimeout(ctx, Scale(10*time.Second))
	defer cancel()
	for {
		_, err := h.Shell(ctx, script)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// ReadFile returns a file of the guest.
func (h *Host) ReadFile(ctx context.Context, path string) ([]byte, error) {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/cat", "--", path}})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("guest %s: %s", h.Name, strings.TrimSpace(r.Stderr))
	}
	return []byte(r.Stdout), err
}

// WriteFile writes a file of the guest.
func (h *Host) WriteFile(ctx context.Context, path string, data []byte) error {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/sh", "-c", `cat >"$1"`, "sh", path}, Stdin: bytes.NewReader(data)})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("guest %s: %s", h.Name, strings.TrimSpace(r.Stderr))
	}
	return err
}

// Dmesg returns the kernel's log.
func (h *Host) Dmesg(ctx context.Context) (string, error) {
	r, err := h.Run(ctx, Cmd{Argv: []string{"/bin/dmesg"}})
	if err == nil && r.Code != 0 {
		err = fmt.Errorf("guest %s: dmesg: %s", h.Name, strings.TrimSpace(r.Stderr))
	}
	return r.Stdout, err
}

// stop ends the guest.
func (h *Host) stop() {
	if h.machine == nil {
		return
	}
	h.machine.kill()
	if h.closer != nil {
		h.closer.Close()
	}
}
