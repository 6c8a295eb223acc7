// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
	"golang.org/x/sys/unix"
)

// Runner runs command lines of documents on hosts of a lab.
type Runner struct {
	*lab.Test
	// Dir is the directory in which the command lines run.
	Dir string
	// Limit is how long a command line may take on real hardware.
	Limit time.Duration
	// Check, if set, judges the result of a command line that has succeeded.
	Check func(t *testing.T, host string, l Line, r lab.Result)

	// started are the programs that go on until Stop.
	started []*lab.Process
}

// Run runs the command lines of blocks, each as a test of its own below t, and those after one that fails, too. It leaves out the blocks
// that another file runs, and those that nothing runs.
func (r *Runner) Run(t *testing.T, blocks []Block) {
	t.Helper()
	for _, b := range blocks {
		if b.Skip == "" && b.By == "" {
			r.RunBlock(t, b)
		}
	}
}

// RunBlock runs the command lines of a block, each as a test of its own below t.
func (r *Runner) RunBlock(t *testing.T, b Block) {
	t.Helper()
	for _, l := range b.Lines {
		if l.Skip != "" {
			continue
		}
		for _, host := range l.On {
			t.Run(fmt.Sprintf("%d %s", l.Number, host), func(t *testing.T) { r.line(t, host, l) })
		}
	}
}

// Stop ends the programs that command lines have started.
func (r *Runner) Stop(t *testing.T) {
	t.Helper()
	for _, p := range r.started {
		lab.Kill(t, p)
	}
	r.started = nil
}

// Shell runs a script of the test, which must succeed, and returns its output.
func (r *Runner) Shell(t *testing.T, host, script string) string {
	t.Helper()
	ctx, cancel := r.within(t)
	defer cancel()
	out, err := r.Host(host).Shell(ctx, script)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// within returns a context for a command line.
func (r *Runner) within(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), lab.Scale(r.Limit))
}

func (r *Runner) line(t *testing.T, host string, l Line) {
	t.Log(l.Text)
	switch {
	case l.Serves:
		r.Serve(t, host, l.Text)
		return
	case l.Stays:
		p := r.start(t, host, l.Text)
		r.started = append(r.started, p.Process)
		p.waitForOutput(r, t)
		return
	case l.GoesOn:
		r.interrupt(t, host, l.Text)
		return
	}
	want := 0
	if l.Fails {
		want = 1
	}
	ctx, cancel := r.within(t)
	defer cancel()
	got, err := r.Host(host).Run(ctx, lab.Cmd{Argv: []string{"/bin/sh", "-euc", l.Text}, Dir: r.Dir})
	switch {
	case err != nil:
		t.Fatal(err)
	case got.Code != want:
		t.Errorf("%s: exit status %d, not %d:\n%s%s", l.Text, got.Code, want, got.Stdout, got.Stderr)
	case r.Check != nil:
		r.Check(t, host, l, got)
	}
}

// Serve starts a program that goes on until Stop, and waits until one more port is listened at.
func (r *Runner) Serve(t *testing.T, host, text string) {
	t.Helper()
	const listeners = "{ ss -Htln; ip -all netns exec ss -Htln; } 2>/dev/null | wc -l"
	before, err := strconv.Atoi(strings.TrimSpace(r.Shell(t, host, listeners)))
	if err != nil {
		t.Fatal(err)
	}
	r.started = append(r.started, r.start(t, host, text).Process)
	if err := r.Host(host).WaitFor(t.Context(), fmt.Sprintf("[ $(%s) -gt %d ]", listeners, before)); err != nil {
		t.Fatalf("%s does not listen: %v", text, err)
	}
}

// program is a program that goes on.
type program struct {
	*lab.Process
	text string
	said firstWrite
}

func (r *Runner) start(t *testing.T, host, text string) program {
	t.Helper()
	p := program{text: text, said: make(firstWrite, 1)}
	var err error
	p.Process, err = r.Host(host).Start(lab.Cmd{Argv: []string{"/bin/sh", "-c", "exec " + text}, Dir: r.Dir, Stdout: p.said})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// waitForOutput waits until the program has printed something.
func (p program) waitForOutput(r *Runner, t *testing.T) {
	t.Helper()
	ctx, cancel := r.within(t)
	defer cancel()
	select {
	case <-p.said:
	case <-ctx.Done():
		t.Errorf("%s prints nothing", p.text)
	}
}

// interrupt starts a program that goes on, and interrupts it after its first output.
func (r *Runner) interrupt(t *testing.T, host, text string) {
	t.Helper()
	p := r.start(t, host, text)
	p.waitForOutput(r, t)
	if err := p.Signal(unix.SIGINT); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := r.within(t)
	defer cancel()
	got, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if got.Code != 128+int(unix.SIGINT) {
		t.Errorf("%s: exit status %d after being interrupted: %s", text, got.Code, got.Stderr)
	}
}

// firstWrite is sent to when something has been written.
type firstWrite chan struct{}

func (w firstWrite) Write(p []byte) (int, error) {
	select {
	case w <- struct{}{}:
	default:
	}
	return len(p), nil
}
