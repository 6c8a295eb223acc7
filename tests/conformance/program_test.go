// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package conformance checks that AF_SMC and IPPROTO_SMC sockets behave like TCP sockets. The program in suite/ contains the
// checks. This package runs it on this machine for TCP, and in guests for the others.
package conformance

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// mode describes the two ends of a connection, and which of them the checks examine.
type mode struct {
	name string
	args []string
}

var (
	asClient = mode{"client", nil}
	asServer = mode{"server", []string{"--role", "server"}}
	toTCP    = mode{"to-tcp", []string{"--peer", "tcp"}}
	fromTCP  = mode{"from-tcp", []string{"--peer", "tcp", "--role", "server"}}
	allModes = []mode{asClient, asServer, toTCP, fromTCP}
	tcpModes = []mode{asClient, asServer}
	tcpOnly  = []string{"inet", "inet6"}
	domains  = []string{"smc", "smc6", "ipproto", "ipproto6"}
)

// run is one run of the suite.
type run struct {
	domain string
	mode   mode
}

func (r run) String() string { return r.domain + "/" + r.mode.name }

func (r run) args(more ...string) []string {
	return append(append([]string{"--domain", r.domain}, r.mode.args...), more...)
}

// runs returns the runs for all combinations of modes and domains.
func runs(modes []mode, domains ...string) (all []run) {
	for _, d := range domains {
		for _, m := range modes {
			all = append(all, run{d, m})
		}
	}
	return all
}

// suite is the compiled suite, for all tests: its compiler takes seconds. It is in a directory that TestMain removes.
var suite struct{ dir, path string }

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	suite.dir = dir
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// program compiles the suite, unless a test has done so.
func program(t *testing.T) string {
	t.Helper()
	if suite.path != "" {
		return suite.path
	}
	path := filepath.Join(suite.dir, "suite")
	if err := os.Rename(lab.CompileC(t, "suite", "-O1"), path); err != nil {
		t.Fatal(err)
	}
	suite.path = path
	return path
}

// list returns the names of the checks of a run.
func list(t *testing.T, binary string, r run, more ...string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, r.args(append(more, "--list")...)...).Output()
	if err != nil {
		t.Fatalf("%s: --list: %v", r, err)
	}
	return strings.Fields(string(out))
}

// verdict is the program's result of a check.
type verdict struct {
	failed, skipped bool
	text            string
}

var line = regexp.MustCompile(`^(not ok|ok) (\w+)(?: (?:-|# (SKIP|EXPECTED)) (.*))?$`)

// parse reads the program's output, which must have one verdict for each name.
func parse(output string, names []string) (map[string]verdict, error) {
	verdicts := map[string]verdict{}
	for l := range strings.Lines(output) {
		m := line.FindStringSubmatch(strings.TrimSuffix(l, "\n"))
		if m == nil {
			return verdicts, fmt.Errorf("not a verdict: %q", l)
		}
		if _, twice := verdicts[m[2]]; twice {
			return verdicts, fmt.Errorf("two verdicts on %s", m[2])
		}
		verdicts[m[2]] = verdict{failed: m[1] == "not ok", skipped: m[3] == "SKIP", text: m[4]}
	}
	for _, name := range names {
		if _, ok := verdicts[name]; !ok {
			return verdicts, fmt.Errorf("no verdict on %s", name)
		}
	}
	if len(verdicts) != len(names) {
		return verdicts, fmt.Errorf("%d verdicts on %d checks", len(verdicts), len(names))
	}
	return verdicts, nil
}

// report reports each check as a subtest.
func report(t *testing.T, names []string, verdicts map[string]verdict) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			switch v := verdicts[name]; {
			case v.failed:
				t.Error(v.text)
			case v.skipped:
				t.Skip(v.text)
			}
		})
	}
}

// TestReference runs the suite over TCP on this machine, where every check must pass.
func TestReference(t *testing.T) {
	binary := program(t)
	for _, r := range runs(tcpModes, tcpOnly...) {
		t.Run(r.String(), func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			out, err := exec.CommandContext(ctx, binary, r.args("--jobs", "32")...).Output()
			if _, failed := err.(*exec.ExitError); err != nil && !failed {
				t.Fatal(err)
			}
			names := list(t, binary, r)
			verdicts, perr := parse(string(out), names)
			if perr != nil {
				t.Fatalf("%v (program: %v)", perr, err)
			}
			report(t, names, verdicts)
			if err != nil && !t.Failed() {
				t.Errorf("all checks passed, but: %v", err)
			}
		})
	}
}

// TestParse checks that incomplete or wrong output is refused.
func TestParse(t *testing.T) {
	names := []string{"a", "b"}
	for _, c := range []struct{ output, want string }{
		{"ok a\nok b\n", ""},
		{"ok a # SKIP no IPv6\nnot ok b - expected 1, got 2\n", ""},
		{"ok a\n", "no verdict on b"},
		{"ok a\nok b\nok c\n", "3 verdicts on 2 checks"},
		{"ok a\nok a\nok b\n", "two verdicts on a"},
		{"ok a\nSegmentation fault\n", `not a verdict: "Segmentation fault\n"`},
		{"ok a\nok b - what?\nok", `not a verdict: "ok"`},
	} {
		_, err := parse(c.output, names)
		if got := fmt.Sprint(err); got != c.want && (c.want != "" || err != nil) {
			t.Errorf("%q: %s, want %q", c.output, got, c.want)
		}
	}
	v, _ := parse("ok a # SKIP why\nnot ok b - this\n", names)
	if !v["a"].skipped || v["a"].text != "why" || !v["b"].failed || v["b"].text != "this" {
		t.Errorf("verdicts %+v", v)
	}
}

// TestSize checks that the suite has the required number of checks.
func TestSize(t *testing.T) {
	if n := len(list(t, program(t), run{"smc", asClient})); n < 150 {
		t.Errorf("only %d checks", n)
	}
}
