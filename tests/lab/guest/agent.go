// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/smckit/smckit/tests/lab/proto"
	"golang.org/x/sys/unix"
)

// portName is the name of the serial port on which the lab listens.
const portName = "smckit"

// agent runs the programs that the lab asks for.
type agent struct {
	conn *proto.Conn

	mu       sync.Mutex
	programs map[uint32]*program
}

// program is one running program.
type program struct {
	cmd   *exec.Cmd
	stdin chan []byte // closed at the end of input
	tty   *os.File    // the master side, or nil
}

// serve answers the lab until it closes the port or asks for the end.
func serve() error {
	port, err := openPort()
	if err != nil {
		return err
	}
	a := &agent{conn: proto.NewConn(port), programs: map[uint32]*program{}}
	var uts unix.Utsname
	if err := unix.Uname(&uts); err != nil {
		return err
	}
	if err := a.conn.SendJSON(0, proto.Hello, proto.Greeting{Kernel: unix.ByteSliceToString(uts.Release[:])}); err != nil {
		return err
	}
	for {
		f, err := a.conn.Receive()
		if err != nil {
			return fmt.Errorf("reading from the lab: %w", err)
		}
		if f.Type == proto.PowerOff {
			return nil
		}
		a.handle(f)
	}
}

// openPort finds the port by the name it has in sysfs: there is no udev here that would make links.
func openPort() (*os.File, error) {
	names, err := filepath.Glob("/sys/class/virtio-ports/*/name")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err == nil && strings.TrimSpace(string(data)) == portName {
			dev := filepath.Join("/dev", filepath.Base(filepath.Dir(name)))
			return os.OpenFile(dev, os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("no serial port %q among %d", portName, len(names))
}

// handle acts on one frame. It must not block: it is what keeps all programs going.
func (a *agent) handle(f proto.Frame) {
	if f.Type == proto.Open {
		var c proto.Command
		if err := json.Unmarshal(f.Payload, &c); err != nil {
			a.exit(f.Stream, proto.Status{Code: -1, Error: err.Error()})
			return
		}
		if err := a.open(f.Stream, c); err != nil {
			a.exit(f.Stream, proto.Status{Code: -1, Error: err.Error()})
		}
		return
	}
	a.mu.Lock()
	p := a.programs[f.Stream]
	a.mu.Unlock()
	if p == nil {
		return // it has ended, and the lab does not know yet
	}
	switch f.Type {
	case proto.Stdin:
		p.stdin <- f.Payload
	case proto.StdinEOF:
		close(p.stdin)
	case proto.Signal:
		if len(f.Payload) == 1 {
			// The whole group: a shell's children are meant too.
			_ = unix.Kill(-p.cmd.Process.Pid, unix.Signal(f.Payload[0]))
		}
	case proto.Resize:
		var size proto.Size
		if json.Unmarshal(f.Payload, &size) == nil && p.tty != nil {
			_ = resize(p.tty, size)
		}
	}
}

// open starts a program and what copies its streams.
func (a *agent) open(stream uint32, c proto.Command) error {
	if len(c.Argv) == 0 {
		return errors.New("no program named")
	}
	cmd := exec.Command(c.Argv[0], c.Argv[1:]...)
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Dir = c.Dir
	// Its own PATH decides, where the lab has set one.
	if err := lookPath(cmd); err != nil {
		return err
	}
	p := &program{cmd: cmd, stdin: make(chan []byte, 1024)}
	start := a.startPipes
	if c.TTY != nil {
		start = a.startTTY
	}
	copies, err := start(stream, p, c.TTY)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.programs[stream] = p
	a.mu.Unlock()
	go a.wait(stream, p, copies)
	return nil
}

// lookPath resolves a program's name along the PATH of the command's own environment.
func lookPath(cmd *exec.Cmd) error {
	name := cmd.Args[0]
	if strings.ContainsRune(name, '/') {
		cmd.Path, cmd.Err = name, nil
		return nil
	}
	var path string
	for _, e := range cmd.Env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		file := filepath.Join(dir, name)
		if unix.Access(file, unix.X_OK) == nil {
			if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() {
				cmd.Path, cmd.Err = file, nil
				return nil
			}
		}
	}
	return fmt.Errorf("%s: command not found", name)
}

// startPipes starts p with a pipe for each standard stream. The returned group is done when all output is sent.
func (a *agent) startPipes(stream uint32, p *program, _ *proto.Size) (*sync.WaitGroup, error) {
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Pipes of our own: Wait would close those of StdoutPipe while output is still in them.
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = outW, errW
	err = p.cmd.Start()
	outW.Close()
	errW.Close()
	if err != nil {
		outR.Close()
		errR.Close()
		return nil, err
	}
	go feed(in, p.stdin)
	var copies sync.WaitGroup
	copies.Go(func() { a.copyOut(stream, proto.Stdout, outR) })
	copies.Go(func() { a.copyOut(stream, proto.Stderr, errR) })
	return &copies, nil
}

// startTTY starts p as the leader of a session on a new terminal.
func (a *agent) startTTY(stream uint32, p *program, size *proto.Size) (*sync.WaitGroup, error) {
	master, slave, err := openPTY()
	if err != nil {
		return nil, err
	}
	defer slave.Close()
	if err := resize(master, *size); err != nil {
		master.Close()
		return nil, err
	}
	p.tty = master
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = slave, slave, slave
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := p.cmd.Start(); err != nil {
		master.Close()
		return nil, err
	}
	go feed(nopCloser{master}, p.stdin)
	var copies sync.WaitGroup
	// Reading a terminal that nobody has open any more fails with EIO: the end.
	copies.Go(func() { a.copyOut(stream, proto.Stdout, master) })
	return &copies, nil
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// feed writes a program's input. It goes on reading after the program has closed its end, so that the lab never waits.
func feed(w io.WriteCloser, chunks <-chan []byte) {
	failed := false
	for chunk := range chunks {
		if !failed {
			_, err := w.Write(chunk)
			failed = err != nil
		}
	}
	w.Close()
}

func (a *agent) copyOut(stream uint32, t proto.Type, r io.ReadCloser) {
	defer r.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		if n > 0 {
			if a.conn.Send(proto.Frame{Stream: stream, Type: t, Payload: buf[:n]}) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// wait reports the program's end. Its output comes first, unless something it left running in the background holds
// the pipes: then the end of the program itself counts.
func (a *agent) wait(stream uint32, p *program, copies *sync.WaitGroup) {
	err := p.cmd.Wait()
	if !backgroundHolds(p.cmd.Process.Pid) {
		copies.Wait()
	}
	status := proto.Status{Code: p.cmd.ProcessState.ExitCode()}
	if ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		status.Signal = int(ws.Signal())
	} else if err != nil && status.Code == 0 {
		status = proto.Status{Code: -1, Error: err.Error()}
	}
	a.mu.Lock()
	delete(a.programs, stream)
	a.mu.Unlock()
	a.exit(stream, status)
}

// backgroundHolds says whether the program's process group outlives it.
func backgroundHolds(pgid int) bool { return unix.Kill(-pgid, 0) == nil }

func (a *agent) exit(stream uint32, s proto.Status) { _ = a.conn.SendJSON(stream, proto.Exit, s) }
