// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/seccomp"
	"github.com/smckit/smckit/internal/sigstart"
	"golang.org/x/sys/unix"
)

// system has the functions of the operating system that the command uses. Tests replace it.
type system struct {
	environ func() []string
	// directory returns the directory of this program.
	directory func() (string, error)
	// prefixes are the directories below which packages put libraries.
	prefixes []string
	// probe makes an AF_SMC socket, and closes it.
	probe func() error
	// absent says why AF_SMC is not available, and what to do.
	absent func() string
	// limit returns a limit of net.core in bytes, 0 if it does not apply to this user.
	limit func(name string) int
	// exec replaces this process with a program. It returns only if it fails.
	exec func(p seccomp.Program) error
	// execSupervised does the same under a supervisor.
	execSupervised func(p seccomp.Program, calls seccomp.Calls, supervisor []string) error
	// supervise is the main function of the supervisor's process.
	supervise func(o *options) error
	// root is the directory that has the files of systemd, "" except in tests.
	root string
	// output runs a program of systemd, and returns what it prints. The error is exec.ErrNotFound if it is not installed.
	output func(ctx context.Context, program string, args ...string) (string, error)
	// keepsSignals reports whether restoreSignals knows which signals were ignored.
	keepsSignals func() bool
}

func newSystem() *system {
	return &system{
		environ: os.Environ,
		directory: func() (string, error) {
			path, err := os.Executable()
			return filepath.Dir(path), err
		},
		prefixes: []string{"/usr/local", "/usr"},
		probe:    probe,
		absent:   catalogue.Absent,
		limit:    limit,
		exec: func(p seccomp.Program) error {
			restoreSignals()
			return &seccomp.ExecError{Path: p.Path, Err: unix.Exec(p.Path, p.Argv, p.Env)}
		},
		execSupervised: func(p seccomp.Program, calls seccomp.Calls, supervisor []string) error {
			// Restore the signals only after the supervisor has started, because that waits for a child process.
			p.Prepare = restoreSignals
			return seccomp.Exec(p, calls, "/proc/self/exe", supervisor)
		},
		supervise: supervise,
		output: func(ctx context.Context, program string, args ...string) (string, error) {
			out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
			return string(out), err
		},
		keepsSignals: func() bool {
			_, known := sigstart.Ignored()
			return known
		},
	}
}

// probe checks whether AF_SMC is available. The kernel loads the module for it if necessary.
func probe() error {
	fd, err := unix.Socket(unix.AF_SMC, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}

func limit(name string) int {
	if unix.Geteuid() == 0 {
		return 0
	}
	text, err := os.ReadFile("/proc/sys/net/core/" + name)
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return n
}

// restoreSignals restores the signal dispositions that this process was started with. exec resets caught signals to their
// defaults, so only ignored signals matter (systemd ignores SIGPIPE, nohup SIGHUP, scripts SIGINT for background jobs).
func restoreSignals() {
	signal.Reset(unix.SIGINT, unix.SIGTERM)
	// All of our commands ignore SIGPIPE. Catch it, so that exec resets it to its default.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	sigstart.Restore()
}

// conn is the number of the file that connects the supervisor to its parent.
const conn = 3

func supervise(o *options) error {
	so := seccomp.Options{
		Receive: o.receive, Send: o.send, Require: o.require, Prefix: o.called + ": ", Quiet: o.quiet, Debug: o.debug,
		Absent: catalogue.Absent,
	}
	if o.rules.Any() {
		so.Match = o.rules.Match
	}
	if err := seccomp.Supervise(os.NewFile(conn, "supervisor"), so); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	return nil
}
