// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func mustLook(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Skip(err)
	}
	return path
}

// children lists the processes that a process has started and that still run, theirs included.
func children(pid int) []int {
	var all []int
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for f := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(f); err == nil {
				all = append(append(all, n), children(n)...)
			}
		}
	}
	return all
}

// emulators returns the emulators among the processes.
func emulators(pids []int) []int {
	var found []int
	for _, pid := range pids {
		if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); err == nil && filepath.Base(exe) == architectures[0].emulator {
			found = append(found, pid)
		}
	}
	return found
}

// waitEnd waits until all of the processes have ended.
func waitEnd(t *testing.T, pids []int) {
	t.Helper()
	deadline := time.Now().Add(Scale(5 * time.Second))
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		var n int
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			ms := max(0, int(time.Until(deadline).Milliseconds()))
			n, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
		}
		unix.Close(fd)
		if err != nil || n != 1 {
			t.Errorf("the emulator %d is still there: %v", pid, err)
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// startSmclab starts the command, waits until a guest prints "inside", and returns it with its emulators. Its temporary
// files are in tmp.
func startSmclab(t *testing.T, tmp string, args ...string) (*exec.Cmd, []int) {
	t.Helper()
	dir, err := Commands(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "smclab"), args...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "TMPDIR="+tmp)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "inside\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	pids := emulators(children(cmd.Process.Pid))
	if len(pids) == 0 {
		t.Fatal("no emulator runs: this test would prove nothing")
	}
	return cmd, pids
}

// TestNothingLeft ends smclab in every possible way, and checks that nothing is left. SIGTERM is handled as SIGINT is, so short runs
// leave it out.
func TestNothingLeft(t *testing.T) {
	Need(t)
	run := []string{"run", "-q", "--module", "none", "--", "sh", "-c", "echo inside; sleep 1000"}
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGINT, unix.SIGTERM} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			if sig == unix.SIGTERM && !Full() {
				t.Skip("boots one more guest: SMCKIT_FULL=1")
			}
			tmp := t.TempDir()
			cmd, pids := startSmclab(t, tmp, run...)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != sig {
				t.Errorf("ended with %v", err)
			}
			waitEnd(t, pids)
			left, err := os.ReadDir(tmp)
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestTestKilled checks the same for a test that is killed. It starts itself as that test.
func TestTestKilled(t *testing.T) {
	Need(t)
	if os.Getenv("SMCKIT_TEST_VICTIM") != "" {
		lt := Start(t, Options{})
		fmt.Printf("\ninside %d\n", lt.Host("a").machine.process.Pid)
		lt.Must("a", "sleep 1000")
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestTestKilled$")
	cmd.Env = append(os.Environ(), "SMCKIT_TEST_VICTIM=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		number, ok := strings.CutPrefix(lines.Text(), "inside ")
		if !ok {
			continue
		}
		pid, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		if got := emulators([]int{pid}); len(got) != 1 {
			t.Fatalf("%d is not an emulator: this test would prove nothing", pid)
		}
		_ = cmd.Process.Kill()
		waitEnd(t, []int{pid})
		return
	}
	t.Fatal("the test that was to be killed has not come that far")
}
