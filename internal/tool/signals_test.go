// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/smckit"
)

// asCommand is the variable that makes the program of the tests a command of the suite.
const asCommand = "SMCKIT_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(cli.Main(smckit.Called(os.Args)))
	}
	os.Exit(m.Run())
}

// TestSignals ends commands that need no module by a signal, and checks the statuses that a shell reports, as docs/compat.md has them. A
// test of cli does the same with --watch.
func TestSignals(t *testing.T) {
	dir := t.TempDir()
	ismd := "smc_ismd --fabric blue:16M --dir " + dir
	served := func(t *testing.T, out *bufio.Reader) { connected(t, out, filepath.Join(dir, "status")) }
	for _, tc := range []struct {
		line   string
		signal syscall.Signal
		status int
		ready  func(*testing.T, *bufio.Reader)
	}{
		{"smc_chk --server", syscall.SIGTERM, 143, printed},
		{"smc_chk --server", syscall.SIGINT, 130, printed},
		{"smckit check --server --json", syscall.SIGTERM, 143, printed},
		{ismd, syscall.SIGTERM, 0, served},
		{ismd, syscall.SIGINT, 0, served},
		{`smc_run -q --method seccomp sh -c "echo ready; read word"`, syscall.SIGTERM, 143, printed},
		{`smckit run -q --method seccomp sh -c "trap 'exit 7' TERM; echo ready; while :; do :; done"`, syscall.SIGTERM, 7, printed},
	} {
		t.Run(tc.line+" "+tc.signal.String(), func(t *testing.T) {
			line, script, _ := strings.Cut(tc.line, `"`)
			argv := strings.Fields(line)
			if script != "" {
				argv = append(argv, strings.TrimSuffix(script, `"`))
			}
			if got := stop(t, argv, tc.signal, tc.ready); got != tc.status {
				t.Errorf("status %d, not %d", got, tc.status)
			}
		})
	}
}

// printed waits for a line of standard output.
func printed(t *testing.T, out *bufio.Reader) {
	if line, err := out.ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}

// connected waits until a command serves a socket.
func connected(t *testing.T, out *bufio.Reader, path string) {
	ended := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, out)
		close(ended)
	}()
	for {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return
		}
		select {
		case <-ended:
			t.Fatal("it has ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// stop runs a command, ends it by a signal when it is ready, and returns its status as a shell reports it.
func stop(t *testing.T, argv []string, sig syscall.Signal, ready func(*testing.T, *bufio.Reader)) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = argv
	// A service manager that runs the tests does not wait for smc_ismd.
	cmd.Env = append(os.Environ(), asCommand+"=1", "NOTIFY_SOCKET=")
	cmd.Stderr = os.Stderr
	// The command has an input that does not end.
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ready(t, bufio.NewReader(out))
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		t.Fatal(cmd.ProcessState)
	}
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}
