// SPDX-License-Identifier: Apache-2.0

// Package model has spin go through everything that can happen to a connection: stream.pml, which runs the closing
// table of the module.
package model

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The model's ways to run, as its head explains them.
var (
	flow    = []string{"N=4", "TOTAL=9", "RESETS=0"}
	paced   = []string{"N=8", "TOTAL=15", "RESETS=0", "LEAST=2", "STEP=1"}
	halves  = []string{"N=8", "TOTAL=15", "RESETS=0", "LEAST=2", "HALVES"}
	anytime = []string{"N=3", "TOTAL=4", "RESETS=0", "ANYTIME"}
	resets  = []string{"N=2", "TOTAL=3", "RESETS=1", "ANYTIME"}
	timers  = []string{"N=2", "TOTAL=3", "RESETS=0", "ANYTIME", "TIMERS"}
)

// deadlock is what the verifier says when nothing can happen any more and not all are done: a lost wakeup, or a
// connection that does not end.
const deadlock = "invalid end state"

func need(t *testing.T, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err == nil {
		return
	}
	if os.Getenv("SMCKIT_LAB") != "" {
		t.Fatalf("no %s: run tests/deps.sh", program)
	}
	t.Skipf("no %s: install %s", program, pkg)
}

func run(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", program, args, err, out)
	}
	return string(out)
}

// steps returns the closing table in Promela. It also reads what only the compiler would, because the go command runs
// tests anew only for files that they have read themselves.
func steps(t *testing.T) string {
	t.Helper()
	for _, file := range []string{"src/steps.c", "../../kernel/conn/close_table.h", "../../kernel/wire/shim.h"} {
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(t.TempDir(), "steps")
	run(t, "", "cc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I../../kernel/conn", "-o", program, "src/steps.c")
	return run(t, "", program)
}

// verifier makes the program that goes through the model, in a directory of its own.
func verifier(t *testing.T, defines []string, flags ...string) (dir string) {
	t.Helper()
	need(t, "spin", "spin")
	need(t, "cc", "gcc and libc6-dev")
	dir = t.TempDir()
	model, err := os.ReadFile("stream.pml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"stream.pml": string(model), "steps.pml": steps(t)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-a"}
	for _, d := range defines {
		args = append(args, "-D"+d)
	}
	if out := run(t, dir, "spin", append(args, "stream.pml")...); strings.TrimSpace(out) != "" {
		t.Fatalf("spin: %s", out)
	}
	run(t, dir, "cc", append(flags, "-DNOFAIR", "-DMEMLIM=1024", "-o", "pan", "pan.c")...)
	return dir
}

// complete checks that nothing was found, and that it was looked for everywhere.
func complete(t *testing.T, out string) {
	t.Helper()
	if !strings.Contains(out, "errors: 0\n") || strings.Contains(out, "not completed") || strings.Contains(out, "pan:1:") {
		t.Errorf("%s", out)
	}
	if m := regexp.MustCompile(`\d+ states, stored`).FindString(out); m == "" {
		t.Errorf("no states:\n%s", out)
	} else {
		t.Log(m)
	}
}

func TestModel(t *testing.T) {
	for _, m := range []struct {
		name    string
		defines []string
		all     bool // each statement of the model must have been reached
	}{
		{"flow", flow, false},
		{"paced", paced, false},
		{"halves", halves, false},
		{"anytime", anytime, true},
		{"resets", resets, true},
		{"timers", timers, true},
	} {
		t.Run(m.name, func(t *testing.T) {
			out := run(t, verifier(t, m.defines, "-O1", "-DSAFETY"), "./pan", "-m20000")
			complete(t, out)
			reached := regexp.MustCompile(`\t\(0 of \d+ states\)`).FindAllString(out, -1)
			if m.all && len(reached) != 5 {
				_, unreached, _ := strings.Cut(out, "unreached in")
				t.Errorf("what the model never does is not checked: unreached in%s", unreached)
			}
		})
	}
}

// TestEnds: no connection goes on for ever, with neither bytes nor flags to move.
func TestEnds(t *testing.T) {
	for _, defines := range [][]string{flow, paced, halves, {"N=2", "TOTAL=3", "RESETS=0", "ANYTIME"}} {
		complete(t, run(t, verifier(t, defines, "-O1", "-DNP"), "./pan", "-m20000", "-l", "-n"))
	}
}

// TestMutations: each change that stream.pml knows to be wrong is found to be wrong, for the right reason.
func TestMutations(t *testing.T) {
	known := map[string]bool{}
	for _, m := range []struct {
		name    string
		defines []string
		finding string
	}{
		{"W_NO_RECHECK_OF_ROOM", flow, deadlock},
		{"W_NO_RECHECK_OF_PROD", flow, deadlock},
		{"W_WAKE_BEFORE_PROD", flow, deadlock},
		{"W_WAITING_BEFORE_CONS", flow, deadlock},
		{"W_STEPS_WITHOUT_WAKEUP", flow, deadlock},
		{"W_PROD_BEFORE_DATA", flow, "assertion violated (ring[(pos%4)]==(read+1))"},
		{"W_CONS_BEFORE_COPY", flow, "assertion violated (ring[((p+k)%4)]==0)"},
		{"W_PROD_BEFORE_EOF", flow, "&&(read==wrote))"},
		{"W_FLAGS_BEFORE_PROD", flow, "&&(read==wrote))"},
		{"W_STEP_TOO_LONG", paced, deadlock},
		{"W_TOLD_WHEN_FULL", halves, deadlock},
		{"W_ABORT_IS_EOF", anytime, "&&(read==wrote))"},
		{"W_STEPS_WITHOUT_LOCK", anytime, "assertion violated ( !(ended[(1-0)])"},
		{"W_CONS_AFTER_THE_END", timers, "assertion violated ( !(ended[(1-1)])"},
	} {
		known[m.name] = true
		t.Run(m.name, func(t *testing.T) {
			dir := verifier(t, append([]string{m.name}, m.defines...), "-O0", "-DSAFETY")
			out := run(t, dir, "./pan", "-m20000", "-n")
			first := regexp.MustCompile(`(?m)^pan:1: .*$`).FindString(out)
			if !strings.Contains(first, m.finding) {
				t.Errorf("want %q, got %q:\n%s", m.finding, first, out)
			}
		})
	}
	model, err := os.ReadFile("stream.pml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\bW_[A-Z_]+`).FindAllString(string(model), -1) {
		if !known[name] {
			t.Errorf("no test shows that %s is wrong", name)
		}
	}
}
