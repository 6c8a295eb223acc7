// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// dir contains smc_run and its library.
var dir string

func TestMain(m *testing.M) {
	var err error
	if dir, err = os.MkdirTemp("", "smcrun"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// install builds smc_run and its library into dir, once, as 'make build' does for users.
var install = sync.OnceValue(func() error {
	if out, err := exec.Command("make", "-s", "-C", "../../..", "build", "COMMANDS="+toolName, "BIN="+dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// command returns a command that runs smc_run.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	for _, program := range []string{"make", "cc", "go"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	return exec.CommandContext(t.Context(), filepath.Join(dir, toolName), args...)
}

// TestIsReplacedByTheProgram checks that the program runs in the process of smc_run, with its input, output and status.
func TestIsReplacedByTheProgram(t *testing.T) {
	cmd := command(t, "-q", "sh", "-c", `cat; echo "$$" "$0" "$@"; exit 7`, "zero", "-d", "two words")
	cmd.Stdin = strings.NewReader("in\n")
	out, err := cmd.Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 7 || len(exit.Stderr) != 0 {
		t.Errorf("%v", err)
	}
	if want := "in\n" + strconv.Itoa(cmd.Process.Pid) + " zero -d two words\n"; string(out) != want {
		t.Errorf("%q, want %q", out, want)
	}
}

// TestEnvironmentIsUntouched checks that only the variables of the library change.
func TestEnvironmentIsUntouched(t *testing.T) {
	cmd := command(t, "-q", "env", "-0")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for v := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if !strings.HasPrefix(v, "SMC_DEBUG=0") && !strings.HasPrefix(v, "SMC_QUIET=1") && !strings.HasPrefix(v, envPreload+"=") {
			got = append(got, v)
		}
	}
	want := cmd.Environ()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q\nwant %q", got, want)
	}
}

// TestSignalsAreAsBefore checks for each method that the program ignores exactly the signals that smc_run's parent ignored or
// inherited as ignored.
func TestSignalsAreAsBefore(t *testing.T) {
	const ignored = `sed -n 's/^SigIgn:.//p' /proc/self/status`
	for _, method := range []string{"preload", "seccomp"} {
		for _, trap := range []string{"", "INT", "HUP", "32", "PIPE", "CHLD", "TERM USR1 SEGV 64", "PROF URG TSTP"} {
			if trap != "" {
				trap = "trap '' " + trap + ";"
			}
			tool := command(t)
			script := trap + ignored + `; exec "$0" -q --method ` + method + " " + ignored
			cmd := exec.CommandContext(t.Context(), "bash", "-c", script, tool.Path)
			out, err := cmd.CombinedOutput()
			lines := strings.Split(string(out), "\n")
			if err != nil || len(lines) != 3 || len(lines[0]) != 16 || lines[0] != lines[1] {
				t.Errorf("%s %s %q, %v; want the same twice", method, trap, out, err)
			}
		}
	}
}

// TestLimitsAreAsBefore checks RLIMIT_NOFILE, which the Go runtime raises for its own process.
func TestLimitsAreAsBefore(t *testing.T) {
	tool := command(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -S -n 99; exec "$0" -q sh -c 'ulimit -S -n'`, tool.Path)
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "99\n" {
		t.Errorf("%q, %v", out, err)
	}
}

// TestStatusOfShells checks the exit status for programs that do not exist or cannot be executed.
func TestStatusOfShells(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk")
	if err := os.WriteFile(junk, []byte("\x00\x01\x02"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]int{"/no/such": 127, t.TempDir(): 126, junk: 126} {
		err := command(t, "-q", program).Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != want {
			t.Errorf("%s: %v, want %d", program, err, want)
		}
	}
}

// TestWithoutProc runs a program without /proc, where smc_run cannot even find its own file to start a supervisor.
func TestWithoutProc(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can unmount /proc, in a namespace of its own")
	}
	tool := command(t)
	// Run a Go program, because it needs a supervisor to get AF_SMC sockets.
	const script = `mount -t tmpfs none /proc && exec "$0" "$0" --version`
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c", script, tool.Path)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &stderr)
	}
	if !strings.HasPrefix(stdout.String(), "smc_run utility") || !strings.Contains(stderr.String(), "sockets stay TCP\n") {
		t.Errorf("%q, %q", &stdout, &stderr)
	}
}
