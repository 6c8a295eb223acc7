// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/seccomp"
	"github.com/smckit/smckit/internal/sigstart"
	"golang.org/x/sys/unix"
)

// system is what the command needs of the system.
type system struct {
	environ func() []string
	// directory is that of this program.
	directory func() (string, error)
	// prefixes are the directories below which packages put libraries.
	prefixes []string
	// probe makes an AF_SMC socket, and closes it.
	probe func() error
	// limit reads a limit of net.core, in bytes; 0 if there is none for this user.
	limit func(name string) int
	// exec executes a program in the place of this one. It returns only if it fails.
	exec func(p seccomp.Program) error
	// execSupervised does it below a supervisor.
	execSupervised func(p seccomp.Program, calls seccomp.Calls, supervisor []string) error
	// supervise is such a supervisor, in a process of its own.
	supervise func(o *options) error
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
		limit:    limit,
		exec: func(p seccomp.Program) error {
			restoreSignals()
			return &seccomp.ExecError{Path: p.Path, Err: unix.Exec(p.Path, p.Argv, p.Env)}
		},
		execSupervised: func(p seccomp.Program, calls seccomp.Calls, supervisor []string) error {
			// Not before the supervisor has been started: that waits for a child.
			p.Prepare = restoreSignals
			return seccomp.Exec(p, calls, supervisor)
		},
		supervise: supervise,
	}
}

// probe says whether programs can have AF_SMC sockets. Where the module is not loaded, this loads it.
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

// restoreSignals gives the program the signals as this one has got them: exec sets those that are caught to their defaults, and
// those that were ignored (systemd ignores SIGPIPE, nohup SIGHUP, scripts SIGINT for background jobs) stay so.
func restoreSignals() {
	signal.Reset(unix.SIGINT, unix.SIGTERM)
	// Ignored by all of our commands, and so by the program, if it is not caught.
	signal.Notify(make(chan os.Signal, 1), unix.SIGPIPE)
	sigstart.Restore()
}

// conn is the file that the supervisor gets.
const conn = 3

func supervise(o *options) error {
	so := seccomp.Options{
		Receive: o.receive, Send: o.send, Require: o.require, Prefix: toolName + ": ", Quiet: o.quiet, Debug: o.debug,
	}
	if o.rules.Any() {
		so.Match = o.rules.Match
	}
	if err := seccomp.Supervise(os.NewFile(conn, "supervisor"), so); err != nil {
		return fmt.Errorf("supervisor: %w", err)
	}
	return nil
}
