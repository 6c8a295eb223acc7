// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Roles of the test binary: it starts a program under a supervisor, is the supervisor, or is the program.
const (
	roleRun       = "test-run"
	roleSupervise = "test-supervise"
	roleProgram   = "test-program"
)

// tag is the priority of the sockets that a supervisor of these tests makes. They are TCP sockets, because AF_SMC may not be
// available.
const tag = 5

// behaviour configures a supervisor of these tests.
type behaviour struct {
	// Fail is the error of making a socket.
	Fail unix.Errno
	// Deny is the error of putting a socket into the program.
	Deny unix.Errno
	// Wait is a file: the supervisor makes IPv6 sockets only when it exists.
	Wait string
	// Ports are the rules; none if empty.
	Ports         []uint16
	Send, Receive int
	Require       bool
	// Log prints every message to standard error, not only warnings.
	Log bool
	// Slow delays each socket for longer than the time between two signals of a program.
	Slow bool
	// Timeout is how long a call waits for an inspector.
	Timeout time.Duration
	// Crash makes the supervisor panic.
	Crash bool
}

func TestMain(m *testing.M) {
	if len(os.Args) < 3 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case roleRun:
		err = runRole(os.Args[2], os.Args[3:])
	case roleSupervise:
		err = superviseRole(os.Args[2])
	case roleProgram:
		err = programs[os.Args[2]](os.Args[3:])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// runRole executes a program under a supervisor.
func runRole(b string, argv []string) error {
	calls := Sockets
	if strings.Contains(b, `"Ports":[`) {
		calls = Addresses
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return Exec(Program{Path: path, Argv: argv, Env: os.Environ()}, calls, "/proc/self/exe", []string{"/proc/self/exe", roleSupervise, b})
}

func superviseRole(arg string) error {
	var b behaviour
	if err := json.Unmarshal([]byte(arg), &b); err != nil {
		return err
	}
	o := Options{
		Send: b.Send, Receive: b.Receive, Require: b.Require, Debug: b.Log, socket: b.socket, timeout: b.Timeout,
		Absent: func() string { return "why not" },
	}
	if b.Deny != 0 {
		o.add = func(uint64, int, uint32) error { return b.Deny }
	}
	if len(b.Ports) > 0 {
		o.Match = func(a netip.AddrPort) bool { return slices.Contains(b.Ports, a.Port()) }
	}
	return Supervise(os.NewFile(3, "listener"), o)
}

// socket makes a TCP socket with the priority tag.
func (b behaviour) socket(domain, typ int) (int, error) {
	if b.Crash {
		panic("a bug")
	}
	if b.Fail != 0 {
		return -1, b.Fail
	}
	for b.Wait != "" && domain == unix.AF_INET6 {
		if _, err := os.Stat(b.Wait); err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if b.Slow {
		time.Sleep(20 * signalPeriod)
	}
	fd, err := unix.Socket(domain, typ, 0)
	if err != nil {
		return -1, err
	}
	return fd, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PRIORITY, tag)
}

// need skips tests where the kernel, or what this process runs in, has no supervised system calls.
func need(t testing.TB) {
	t.Helper()
	actions, err := os.ReadFile("/proc/sys/kernel/seccomp/actions_avail")
	if err != nil || !bytes.Contains(actions, []byte("user_notif")) {
		t.Skip("this kernel has no supervision of system calls")
	}
	// Containers may already have a supervisor, which excludes ours. Then the error says so.
	out, err := under(t, behaviour{}, "true").CombinedOutput()
	if err != nil && bytes.Contains(out, []byte(ErrSupervised.Error())) {
		t.Skip(string(out))
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// under returns a command that runs under a supervisor.
func under(t testing.TB, b behaviour, argv ...string) *exec.Cmd {
	t.Helper()
	arg, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self(t), append([]string{roleRun, string(arg)}, argv...)...)
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// program returns a command line that runs one of the programs in programs_test.go.
func program(t testing.TB, name string, args ...string) []string {
	return append([]string{self(t), roleProgram, name}, args...)
}

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// run runs a command to its end and returns what it prints.
func run(t testing.TB, cmd *exec.Cmd) (stdout, stderr string) {
	t.Helper()
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %v\n%s%s", cmd.Args[3:], err, o.String(), e.String())
	}
	return o.String(), e.String()
}
