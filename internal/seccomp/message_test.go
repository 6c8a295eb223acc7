// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// publicDir is a directory that every user can enter.
func publicDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "smckit-seccomp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUnprivilegedProgramCannotWriteByTheSupervisor runs a supervisor as root, and a program that has given up its privileges
// and tries to get a line into a file that only root may write.
func TestUnprivilegedProgramCannotWriteByTheSupervisor(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	secret := filepath.Join(publicDir(t), "secret")
	if err := os.WriteFile(secret, []byte("root's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := behaviour{Fail: unix.EAFNOSUPPORT, Log: true}
	run(t, under(t, b, program(t, "forge", secret)...))
	if text, err := os.ReadFile(secret); err != nil || string(text) != "root's\n" {
		t.Errorf("the file that only root may write contains %.200q, %v", text, err)
	}
}

// TestMessagesGoToTheFirstStandardErrorOnly runs a program that opens another file in place of its standard error.
func TestMessagesGoToTheFirstStandardErrorOnly(t *testing.T) {
	need(t)
	file := filepath.Join(t.TempDir(), "database")
	b := behaviour{Fail: unix.EAFNOSUPPORT, Log: true}
	_, stderr := run(t, under(t, b, program(t, "redirected", file)...))
	if text, err := os.ReadFile(file); err != nil || len(text) > 0 || stderr != "" {
		t.Errorf("the file has %q, %v; standard error: %q", text, err, stderr)
	}
	// A message about a child goes to the standard error of the parent.
	_, stderr = run(t, under(t, b, "sh", "-euc", `(exec "$0" $1 plain 2>"$2"); :`, self(t), roleProgram, file))
	if text, err := os.ReadFile(file); err != nil || len(text) > 0 || !strings.Contains(stderr, "AF_SMC is not available") {
		t.Errorf("the child's file has %q, %v; standard error: %q", text, err, stderr)
	}
	// A program without standard error gets no message.
	_, stderr = run(t, under(t, b, "sh", "-euc", `exec "$0" $1 plain 2>&-`, self(t), roleProgram))
	if stderr != "" {
		t.Errorf("standard error: %q", stderr)
	}
	// A message may go to another descriptor of the same file.
	_, stderr = run(t, under(t, b, "sh", "-euc", `exec 3>&2 2>/dev/null; exec "$0" $1 plain 2>&3 3>&-`, self(t), roleProgram))
	if !strings.Contains(stderr, "AF_SMC is not available") {
		t.Errorf("standard error: %q", stderr)
	}
}

// TestNamesOfProgramsAreEscaped tries program names that could be mistaken for other text.
func TestNamesOfProgramsAreEscaped(t *testing.T) {
	need(t)
	for name, want := range map[string]string{
		"a\nb":       `a\nb[`,
		"a\x1b[2Jb":  `a\x1b[2Jb[`,
		"\xff\u202e": `\xff\u202e[`,
		`a\nb`:       `a\\nb[`,
		" kworker/0": " kworker/0[",
		"häuser":     "häuser[",
	} {
		_, stderr := run(t, under(t, behaviour{Fail: unix.EAFNOSUPPORT}, program(t, "named", strconv.QuoteToASCII(name))...))
		if !strings.HasPrefix(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%q: %q", name, stderr)
		}
	}
}

// TestMessagesDoNotHoldUpWorkers uses a standard error for which poll() reports that it is writable, but write() blocks.
func TestMessagesDoNotHoldUpWorkers(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	p := newPrinter(identify(int(null.Fd())), -1, "")
	p.timeout = time.Millisecond
	blocked, resume := make(chan struct{}, 1), make(chan struct{})
	var written []string
	p.write = func(_ int, text string) {
		written = append(written, text)
		blocked <- struct{}{}
		<-resume
	}
	borrow := func() (int, bool) {
		fd, err := unix.Dup(int(null.Fd()))
		return fd, err == nil
	}
	ready := make(chan error)
	go p.run(ready)
	<-ready
	before, err := openFiles()
	if err != nil {
		t.Fatal(err)
	}
	p.print("first", borrow, nil)
	<-blocked
	p.timeout = time.Hour // no worker waits while the printer is stalled
	for range 2 * printerPlaces {
		p.print("dropped, or later", borrow, nil)
	}
	if len(p.places) != printerPlaces {
		t.Errorf("%d messages wait, not %d", len(p.places), printerPlaces)
	}
	close(resume)
	for range printerPlaces - 1 {
		<-blocked
	}
	// When this message has been written, all earlier ones have been, too.
	done := make(chan struct{})
	p.places <- struct{}{}
	p.lines <- line{fd: -1, done: done}
	<-done
	if after, err := openFiles(); err != nil || after != before {
		t.Errorf("%d files are open, %d were, %v", after, before, err)
	}
	if len(written) != printerPlaces || written[0] != "first\n" {
		t.Errorf("%q", written)
	}
}

// TestMessageThatCannotBeWritten checks that such a message goes to the fallback, unless the program has ended.
func TestMessageThatCannotBeWritten(t *testing.T) {
	p := newPrinter(fileID{}, -1, "")
	ready := make(chan error)
	go p.run(ready)
	<-ready
	var got []string
	fallback := func(text string) { got = append(got, text) }
	p.print("a", func() (int, bool) { return -1, true }, fallback)
	p.print("b", func() (int, bool) { return -1, false }, fallback)
	p.print("c", func() (int, bool) { return -1, true }, nil)
	if len(got) != 1 || got[0] != "a" {
		t.Errorf("%q", got)
	}
}
