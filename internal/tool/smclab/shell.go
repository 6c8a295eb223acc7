// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smclab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/lab/proto"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// controlSocket returns the path of the socket by which `smclab shell` reaches `smclab up`. It is in a directory that only this
// user can enter.
func controlSocket(env *cli.Env) (string, error) {
	dir := env.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		cache, err := lab.CacheDir()
		if err != nil {
			return "", err
		}
		dir = cache
	}
	dir = filepath.Join(dir, "smclab")
	return filepath.Join(dir, "control"), os.MkdirAll(dir, 0o700)
}

func newUp(env *cli.Env) *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Boot a two-host SMC network and open a shell in host a",
		Long: `Boot the lab and open a shell in host a. In other terminals, 'smclab shell HOST' opens more shells. The lab ends when
you leave the first shell. If standard input is not a terminal, smclab reads commands from it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			path, err := controlSocket(env)
			if err != nil {
				return err
			}
			listener, err := listen(path)
			if err != nil {
				return err
			}
			defer listener.Close()
			l, err := o.start(cmd.Context(), env)
			if err != nil {
				return err
			}
			defer l.Close()
			go accept(listener, l)
			if !o.quiet {
				fmt.Fprintf(env.Err, "smclab: this is host a; 'smclab shell b' in another terminal is host b; 'exit' ends the lab\n")
			}
			return shell(cmd.Context(), env, path, "a")
		},
	}
	o.addFlags(cmd, 2)
	return cmd
}

func newShell(env *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:       "shell HOST",
		Short:     "Open a shell in a guest of the lab that 'smclab up' runs",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"a", "b"},
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := controlSocket(env)
			if err != nil {
				return err
			}
			return shell(cmd.Context(), env, path, args[0])
		},
	}
}

// listen opens the control socket, unless a lab is up already.
func listen(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, errors.New("a lab is up already: use 'smclab shell a', or leave its first shell")
	}
	// A lab that was killed has left its socket.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// accept serves requests from the control socket until the listener is closed. They run programs in the guests.
func accept(listener net.Listener, l *lab.Lab) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		// The client sees how the connection ends.
		go func() { _ = proto.Serve(conn, proto.Hello{}, func(s *proto.Session) { relay(s, l) }) }()
	}
}

// relay runs a client's request in the guest that it names.
func relay(s *proto.Session, l *lab.Lab) {
	r := s.Request
	fail := func(err error) { s.Finish(proto.Exit{Error: err.Error()}) }
	h := l.Host(r.Host)
	if h == nil {
		fail(fmt.Errorf("no host %q: this lab has %d, from a on", r.Host, len(l.Hosts)))
		return
	}
	p, err := h.Start(lab.Cmd{
		Argv: r.Argv, Env: r.Env, Dir: r.Dir, TTY: r.TTY,
		Stdin: s.Reader(proto.Stdin), Stdout: s.Writer(proto.Stdout), Stderr: s.Writer(proto.Stderr),
	})
	if err != nil {
		fail(err)
		return
	}
	go func() {
		for {
			signals, size, ok := s.Event()
			if !ok {
				return
			}
			for _, sig := range signals {
				_ = p.Signal(unix.Signal(sig))
			}
			if size != nil {
				_ = p.Resize(*size)
			}
		}
	}()
	// End the program if the client disconnects.
	ctx, cancel := context.WithCancel(context.Background())
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		defer cancel()
		select {
		case <-s.Done():
		case <-stop:
		}
	}()
	result, err := p.Wait(ctx)
	if err != nil {
		fail(err)
		return
	}
	s.Finish(proto.Exit{Code: result.Code})
}

// shell opens a shell in a guest, on this process's terminal if it has one.
func shell(ctx context.Context, env *cli.Env, path, host string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return errors.New("no lab is up: start one with 'smclab up'")
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c := proto.Client(conn, nil)
	defer c.Close()
	// The banner of a login shell is that of this machine, so set a prompt that identifies the guest.
	r := proto.Request{
		Op: proto.OpExec, Host: host, Argv: []string{"/bin/bash", "--norc", "-i"}, Dir: "/root",
		Env: []string{"PS1=" + host + ":\\w# ", "TERM=" + env.Getenv("TERM")},
	}
	in, isFile := env.In.(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		r.Argv = []string{"/bin/bash", "-s"}
		return follow(ctx, env, c, r, -1)
	}
	fd := int(in.Fd())
	size := windowSize(fd)
	r.TTY = &size
	old, err := term.MakeRaw(fd)
	if err != nil {
		return err
	}
	defer func() { _ = term.Restore(fd, old) }()
	return follow(ctx, env, c, r, fd)
}

// follow runs a request with this process's streams. If fd is not -1, it is a terminal whose changes of size follow forwards.
func follow(ctx context.Context, env *cli.Env, c *proto.Conn, r proto.Request, fd int) error {
	s, err := c.Open(r)
	if err != nil {
		return errors.New("the lab has ended")
	}
	if fd >= 0 {
		defer watchSize(s, fd)()
	}
	go func() {
		w := s.Writer(proto.Stdin)
		_, _ = io.Copy(w, env.In)
		_ = w.Close()
	}()
	var copies errgroup.Group
	copies.Go(func() error { _, err := io.Copy(flusher{env}, s.Reader(proto.Stdout)); return err })
	copies.Go(func() error { _, err := io.Copy(env.Err, s.Reader(proto.Stderr)); return err })
	err = copies.Wait()
	if c.Err() != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errors.New("the lab has ended")
	}
	if err != nil {
		return err
	}
	select {
	case <-s.Done():
	case <-ctx.Done():
		return ctx.Err()
	}
	exit, err := s.Exit()
	switch {
	case err != nil:
		return errors.New("the lab has ended")
	case exit.Error != "":
		return errors.New(exit.Error)
	case exit.Code != 0:
		return &cli.StatusError{Status: exit.Code}
	}
	return nil
}

func windowSize(fd int) proto.Size {
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return proto.Size{Rows: 24, Cols: 80}
	}
	return proto.Size{Rows: uint16(rows), Cols: uint16(cols)}
}

// watchSize reports each change of the terminal's size to the guest until the returned function is called.
func watchSize(s *proto.Session, fd int) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for range changed {
			_ = s.Resize(windowSize(fd))
		}
	}()
	return func() {
		signal.Stop(changed)
		close(changed)
	}
}
