// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

// lateOutput is how long the agent waits for more output after a process has ended, while its background process keeps the pipe
// open.
const lateOutput = time.Second

// agent runs the programs that the lab asks for.
type agent struct {
	mu    sync.Mutex
	procs map[int]chan unix.WaitStatus
}

func newAgent() *agent { return &agent{procs: map[int]chan unix.WaitStatus{}} }

// reap collects every process that ends, as process 1 must, and reports the end to the goroutine that waits for it.
func (a *agent) reap() {
	sigs := make(chan os.Signal, 1)
	signal.Notify(sigs, unix.SIGCHLD)
	for range sigs {
		for {
			var ws unix.WaitStatus
			pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, nil)
			if err == unix.EINTR {
				continue
			}
			if err != nil || pid <= 0 {
				break
			}
			// start holds the lock until the process it has started is in the table.
			a.mu.Lock()
			if c := a.procs[pid]; c != nil {
				c <- ws
				delete(a.procs, pid)
			}
			a.mu.Unlock()
		}
	}
}

func (a *agent) serve(s *proto.Session) {
	var e proto.Exit
	var err error
	switch s.Request.Op {
	case proto.OpExec:
		e, err = a.exec(s)
	case proto.OpRead:
		err = readFile(s)
	case proto.OpWrite:
		err = writeFile(s)
	case proto.OpLog:
		err = kernelLog(s.Writer(proto.Stdout))
	default:
		err = fmt.Errorf("unknown operation %q", s.Request.Op)
	}
	if err != nil {
		e = proto.Exit{Error: err.Error()}
	}
	s.Finish(e)
}

// exec runs the command of s to its end.
func (a *agent) exec(s *proto.Session) (proto.Exit, error) {
	std, err := newStdio(s.Request.TTY)
	if err != nil {
		return proto.Exit{}, err
	}
	pid, ended, err := a.start(s.Request, std)
	std.closeChild()
	if err != nil {
		std.close()
		return proto.Exit{}, err
	}
	go func() {
		_, _ = io.Copy(std.in, s.Reader(proto.Stdin))
		if s.Request.TTY == nil {
			std.in.Close()
		}
	}()
	go func() {
		for {
			signals, size, ok := s.Event()
			if !ok {
				return
			}
			for _, sig := range signals {
				// Signal the whole group, because it includes the children of a shell.
				_ = unix.Kill(-pid, unix.Signal(sig))
			}
			if size != nil {
				_ = setSize(std.in, *size)
			}
		}
	}()
	var out sync.WaitGroup
	for n, f := range map[int]*os.File{proto.Stdout: std.out, proto.Stderr: std.err} {
		if f != nil {
			out.Go(func() { copyOut(s.Writer(n), f) })
		}
	}
	ws := <-ended
	std.expire(lateOutput)
	out.Wait()
	std.close()
	if ws.Signaled() {
		return proto.Exit{Code: -1, Signal: int(ws.Signal())}, nil
	}
	return proto.Exit{Code: ws.ExitStatus()}, nil
}

func (a *agent) start(r proto.Request, std *stdio) (int, chan unix.WaitStatus, error) {
	if len(r.Argv) == 0 {
		return 0, nil, errors.New("no command given")
	}
	env := environment(os.Environ(), r.Env)
	path, err := lookPath(r.Argv[0], env)
	if err != nil {
		return 0, nil, err
	}
	dir := r.Dir
	if dir == "" {
		dir = "/root"
	}
	attr := &syscall.ProcAttr{
		Dir:   dir,
		Env:   env,
		Files: std.child(),
		Sys:   &syscall.SysProcAttr{Setsid: true, Setctty: r.TTY != nil},
	}
	ended := make(chan unix.WaitStatus, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	pid, err := syscall.ForkExec(path, r.Argv, attr)
	if err != nil {
		if _, serr := os.Stat(dir); serr != nil {
			return 0, nil, serr
		}
		return 0, nil, fmt.Errorf("%s: %w", path, err)
	}
	a.procs[pid] = ended
	return pid, ended, nil
}

// environment adds variables to an environment. It replaces existing ones, because programs differ in which of two equal names
// they use.
func environment(env, added []string) []string {
	for _, a := range added {
		key, _, _ := strings.Cut(a, "=")
		env = slices.DeleteFunc(env, func(e string) bool { return strings.HasPrefix(e, key+"=") })
		env = append(env, a)
	}
	return env
}

// lookPath resolves a program's name along the PATH of its own environment.
func lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	var path string
	for _, e := range env {
		if v, ok := strings.CutPrefix(e, "PATH="); ok {
			path = v
		}
	}
	for dir := range strings.SplitSeq(path, ":") {
		file := filepath.Join(dir, name)
		if st, err := os.Stat(file); err == nil && st.Mode().IsRegular() && unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s: command not found", name)
}
