// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// dir has smckit, its links and the library of smc_run.
var dir string

// install builds smckit and its links into dir, once, as 'make build' does for users.
var install = sync.OnceValue(func() error {
	if out, err := exec.Command("make", "-s", "-C", "../../..", "build", "COMMANDS="+name, "BIN="+dir).CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
})

// program returns the path of smckit under one of its names.
func program(t *testing.T, called string) string {
	t.Helper()
	for _, p := range []string{"make", "cc", "go"} {
		if _, err := exec.LookPath(p); err != nil {
			t.Skip(err)
		}
	}
	if err := install(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, called)
}

// output runs a command, whose status has to be the given one.
func output(t *testing.T, status int, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || cmd.ProcessState.ExitCode() != status {
		t.Errorf("%q: %v, not status %d\n%s", argv, err, status, out)
	}
	return string(out)
}

// maxSize is the most that all commands together may take on a host, in bytes.
const maxSize = 16_000_000

// TestProgram checks the size of all commands, and that a link, a copy and a link to a link are the command of that name.
func TestProgram(t *testing.T) {
	info, err := os.Stat(program(t, name))
	if err != nil || info.Size() > maxSize {
		t.Fatalf("smckit has %d bytes, more than %d: %v", info.Size(), maxSize, err)
	}
	elsewhere := t.TempDir()
	for _, tool := range Tools() {
		link := program(t, tool.Name)
		if target, err := os.Readlink(link); err != nil || target != name {
			t.Errorf("%s is a link to %q: %v", tool.Name, target, err)
		}
		second := filepath.Join(elsewhere, tool.Name)
		if err := os.Symlink(link, second); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{link, second} {
			if out := output(t, 0, path, "--version"); !strings.HasPrefix(out, tool.Name+" utility, smckit-") {
				t.Errorf("%s --version: %s", path, out)
			}
		}
	}
	copied := filepath.Join(elsewhere, "copy", "smcr")
	output(t, 0, "mkdir", filepath.Dir(copied))
	output(t, 0, "cp", program(t, "smcr"), copied)
	if out := output(t, 2, copied, "foo"); out != "smcr: object \"foo\" is unknown; see 'smcr --help'\n" {
		t.Errorf("a copy: %s", out)
	}
	if out := output(t, 0, program(t, name), "sockets", "--version"); !strings.HasPrefix(out, "smckit utility, ") {
		t.Errorf("smckit sockets --version: %s", out)
	}
}

// TestRun checks what smc_run needs of its program: the library beside it, the signals that its parent ignores, and the program
// itself as the supervisor.
func TestRun(t *testing.T) {
	link := filepath.Join(t.TempDir(), "smc_run")
	if err := os.Symlink(program(t, "smc_run"), link); err != nil {
		t.Fatal(err)
	}
	// The test itself may have been started with ignored signals.
	const script = `trap "" USR1; exec "$@"`
	show := []string{"sh", "-c", `echo "$LD_PRELOAD"; grep SigIgn /proc/self/status`}
	ignored := output(t, 0, append([]string{"sh", "-c", script, "-"}, show...)...)
	ignored = ignored[strings.Index(ignored, "SigIgn"):]
	for _, run := range [][]string{{program(t, "smc_run")}, {link}, {program(t, name), "run"}} {
		argv := slices.Concat([]string{"sh", "-c", script, "-"}, run, []string{"-q", "--method", "preload"}, show)
		library, signals, _ := strings.Cut(output(t, 0, argv...), "\n")
		if !strings.HasSuffix(library, program(t, "libsmc-preload.so.1")) {
			t.Errorf("%q preloads %q", run, library)
		}
		if signals != ignored && runtime.GOARCH == "amd64" {
			t.Errorf("%q: %s, not %s", run, signals, ignored)
		}
		supervised := output(t, 0, append(run, "-d", "--method", "seccomp", "sh", "-c", "echo run")...)
		if !strings.HasSuffix(supervised, "run\n") {
			t.Errorf("%q, supervised: %s", run, supervised)
		}
		if strings.Contains(supervised, "starting the supervisor") {
			t.Errorf("%q does not start itself: %s", run, supervised)
		}
	}
}

// TestReport checks that smc_dbg reads its sections by starting its program again.
func TestReport(t *testing.T) {
	for _, report := range [][]string{{program(t, "smc_dbg")}, {program(t, name), "report"}} {
		out := output(t, 0, report...)
		if !strings.Contains(out, "==> version.txt <==\nsmc_dbg utility, smckit-") || strings.Contains(out, "unknown flag") {
			t.Errorf("%q: %.2000s", report, out)
		}
	}
}
