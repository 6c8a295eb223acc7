// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smclab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/tests/lab"
	"github.com/smckit/smckit/tests/lab/proto"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// controlSocket is where `smclab up` can be reached by `smclab shell`: in a directory that is this user's alone.
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
		Long: `Boot the lab and open a shell in host a. 'smclab shell HOST' opens more, from other terminals. Leaving the first
shell ends the lab. Without a terminal on standard input, commands are read from there.`,
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
			go serve(listener, l)
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
	// What is left of a lab that was killed.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return net.Listen("unix", path)
}

// serve runs what comes in on the control socket in the guests, until the listener is closed.
func serve(listener net.Listener, l *lab.Lab) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			session(proto.NewConn(conn), l)
		}()
	}
}

// session runs one program for a client that speaks the same frames as a guest's agent.
func session(client *proto.Conn, l *lab.Lab) {
	fail := func(err error) { _ = client.SendJSON(1, proto.Exit, proto.Status{Code: -1, Error: err.Error()}) }
	first, err := client.Receive()
	var c proto.Command
	if err != nil || first.Type != proto.Open || json.Unmarshal(first.Payload, &c) != nil {
		return
	}
	h := l.Host(c.Host)
	if h == nil {
		fail(fmt.Errorf("no host %q: this lab has %d, from a on", c.Host, len(l.Hosts)))
		return
	}
	in, feed := io.Pipe()
	p, err := h.Start(lab.Cmd{
		Argv: c.Argv, Env: c.Env, Dir: c.Dir, TTY: c.TTY, Stdin: in,
		Stdout: frameWriter{client, proto.Stdout}, Stderr: frameWriter{client, proto.Stderr},
	})
	if err != nil {
		fail(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		// A client that is gone takes its program with it.
		defer cancel()
		defer feed.Close()
		relay(client, p, feed)
	}()
	r, err := p.Wait(ctx)
	in.Close()
	if err != nil {
		fail(err)
		return
	}
	_ = client.SendJSON(1, proto.Exit, proto.Status{Code: r.Code})
}

// relay passes a client's input, signals and terminal sizes on to its program.
func relay(client *proto.Conn, p *lab.Process, feed *io.PipeWriter) {
	for {
		f, err := client.Receive()
		if err != nil {
			return
		}
		switch f.Type {
		case proto.Stdin:
			_, _ = feed.Write(f.Payload)
		case proto.StdinEOF:
			feed.Close()
		case proto.Signal:
			if len(f.Payload) == 1 {
				_ = p.Signal(unix.Signal(f.Payload[0]))
			}
		case proto.Resize:
			var size proto.Size
			if json.Unmarshal(f.Payload, &size) == nil {
				_ = p.Resize(size)
			}
		}
	}
}

type frameWriter struct {
	conn *proto.Conn
	t    proto.Type
}

func (w frameWriter) Write(p []byte) (int, error) {
	return len(p), w.conn.Send(proto.Frame{Stream: 1, Type: w.t, Payload: p})
}

// shell opens a shell in a guest, on this process's terminal if it has one.
func shell(ctx context.Context, env *cli.Env, path, host string) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return errors.New("no lab is up: start one with 'smclab up'")
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	c := proto.NewConn(conn)
	// The banner of a login shell is this machine's, not the guest's; the prompt is what tells them apart.
	open := proto.Command{Host: host, Argv: []string{"/bin/bash", "--norc", "-i"}, Env: []string{"PS1=" + host + ":\\w# ", "TERM=" + env.Getenv("TERM")}, Dir: "/root"}
	in, isFile := env.In.(*os.File)
	terminal := isFile && term.IsTerminal(int(in.Fd()))
	if terminal {
		fd := int(in.Fd())
		size := windowSize(fd)
		open.TTY = &size
		old, err := term.MakeRaw(fd)
		if err != nil {
			return err
		}
		defer func() { _ = term.Restore(fd, old) }()
		defer watchSize(c, fd)()
	} else {
		open.Argv = []string{"/bin/bash", "-s"}
	}
	if err := c.SendJSON(1, proto.Open, open); err != nil {
		return err
	}
	go sendInput(c, env.In)
	return receiveOutput(ctx, env, c)
}

// sendInput copies standard input to the guest.
func sendInput(c *proto.Conn, in io.Reader) {
	buf := make([]byte, 4096)
	for {
		n, err := in.Read(buf)
		if n > 0 && c.Send(proto.Frame{Stream: 1, Type: proto.Stdin, Payload: buf[:n]}) != nil {
			return
		}
		if err != nil {
			_ = c.Send(proto.Frame{Stream: 1, Type: proto.StdinEOF})
			return
		}
	}
}

// receiveOutput copies what the guest's program prints until it ends, and returns how it ended.
func receiveOutput(ctx context.Context, env *cli.Env, c *proto.Conn) error {
	for {
		f, err := c.Receive()
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return errors.New("the lab has ended")
		}
		switch f.Type {
		case proto.Stdout:
			if _, err := (flusher{env}).Write(f.Payload); err != nil {
				return err
			}
		case proto.Stderr:
			if _, err := env.Err.Write(f.Payload); err != nil {
				return err
			}
		case proto.Exit:
			var s proto.Status
			if err := json.Unmarshal(f.Payload, &s); err != nil {
				return err
			}
			if s.Error != "" {
				return errors.New(s.Error)
			}
			if s.Code != 0 {
				return &cli.StatusError{Status: s.Code}
			}
			return nil
		}
	}
}

func windowSize(fd int) proto.Size {
	cols, rows, err := term.GetSize(fd)
	if err != nil {
		return proto.Size{Rows: 24, Cols: 80}
	}
	return proto.Size{Rows: uint16(rows), Cols: uint16(cols)}
}

// watchSize tells the guest whenever the terminal changes its size, until the returned function is called.
func watchSize(c *proto.Conn, fd int) (stop func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	go func() {
		for range changed {
			_ = c.SendJSON(1, proto.Resize, windowSize(fd))
		}
	}()
	return func() {
		signal.Stop(changed)
		close(changed)
	}
}
