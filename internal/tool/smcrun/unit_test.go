// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/need"
	"github.com/spf13/cobra"
)

// host is a system with services.
type host struct {
	root    string
	signals bool
	// answers are the outputs of programs of systemd. A program without one is not installed.
	answers map[string]func(args []string) (string, error)
	called  []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	h := &host{root: t.TempDir(), signals: true, answers: map[string]func([]string) (string, error){}}
	h.put(t, "usr/bin/smc_run", "#!/bin/sh\n")
	h.put(t, "usr/lib/"+libraryName, "")
	h.put(t, "usr/bin/prog", "#!/bin/sh\n")
	h.put(t, "lib/systemd/system/web.service", "[Service]\nExecStart=-/usr/bin/prog -x\nRestrictAddressFamilies=AF_INET\nSystemCallFilter=@system-service\n")
	h.put(t, "lib/systemd/system/web@.service", "[Service]\nExecStart=/usr/bin/prog %i\n")
	h.ok("systemctl")
	return h
}

func (h *host) ok(program string) {
	h.answers[program] = func([]string) (string, error) { return "", nil }
}

func (h *host) put(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(h.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// read returns the text of a file, "" if there is none.
func (h *host) read(name string) string {
	text, err := os.ReadFile(filepath.Join(h.root, name))
	if err != nil {
		return ""
	}
	return string(text)
}

func (h *host) run(args string) result {
	var out, errOut bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &errOut, Getenv: func(string) string { return "" },
		EnterNetNS: func(string) error { return errors.New("entered a namespace") },
	}
	sys := &system{
		directory: func() (string, error) { return h.root + "/usr/bin", nil },
		prefixes:  []string{h.root + "/usr/local", h.root + "/usr"},
		root:      h.root,
		output: func(_ context.Context, program string, args ...string) (string, error) {
			answer := h.answers[program]
			if answer == nil {
				return "", &exec.Error{Name: program, Err: exec.ErrNotFound}
			}
			h.called = append(h.called, program+" "+strings.Join(args, " "))
			return answer(args)
		},
		keepsSignals: func() bool { return h.signals },
	}
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, sys) }
	status := cli.Run(context.Background(), tool, env, strings.Fields(args))
	clean := strings.NewReplacer(h.root, "")
	return result{status, clean.Replace(out.String()), clean.Replace(errOut.String())}
}

const (
	webDropIn = "etc/systemd/system/web.service.d/zz-smc.conf"
	next      = "To apply this, run 'systemctl daemon-reload' and 'systemctl try-restart web.service'.\n"
	unchecked = "smc_run: note: systemd-analyze is not installed, so the drop-in is not verified\n"
)

// TestUnit writes, changes and removes a drop-in.
func TestUnit(t *testing.T) {
	h := newHost(t)
	lines := func(command string) string {
		return "# Written by smc_run --unit web.service, which removes it with --undo.\n[Service]\nExecStart=\nExecStart=-" + h.root +
			"/usr/bin/smc_run " + command + "/usr/bin/prog -x\nRestrictAddressFamilies=AF_SMC\n"
	}
	supervised := lines("--method seccomp -r 4096 -t 8192 --port 80 --not 10.0.0.0/8 -d -q --require ") + "SystemCallFilter=seccomp pidfd_getfd process_vm_readv\n"
	for _, test := range []struct {
		args, out, file string
	}{
		{"--unit web --check", "would write /" + webDropIn + "\n", ""},
		{"--unit web --undo", "unchanged: there is no /" + webDropIn + "\n", ""},
		{"--unit web", "wrote /" + webDropIn + "\n" + next, lines("")},
		{"--unit web.service", "unchanged: /" + webDropIn + " is up to date\n", lines("")},
		{
			"--unit web --diff --check --port 80",
			"would write /" + webDropIn + "\n-ExecStart=-/usr/bin/smc_run /usr/bin/prog -x\n+ExecStart=-/usr/bin/smc_run --port 80 /usr/bin/prog -x\n", lines(""),
		},
		{
			"--unit web --method seccomp -r 4k -t 8k --port 80 --not 10.0.0.0/8 -d -q --require", "wrote /" + webDropIn + "\n" + next,
			supervised,
		},
		{"--unit web --undo --check", "would remove /" + webDropIn + "\n", supervised},
		{"--unit web --undo", "removed /" + webDropIn + "\n" + next, ""},
	} {
		got := h.run(test.args)
		if want := (result{0, test.out, unchecked}); got != want && got != (result{0, test.out, ""}) {
			t.Errorf("%s: %+v, want %+v", test.args, got, want)
		}
		if diff := cmp.Diff(test.file, h.read(webDropIn)); diff != "" {
			t.Errorf("%s: %s", test.args, diff)
		}
	}
	if _, err := os.Stat(filepath.Join(h.root, filepath.Dir(webDropIn))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the directory of the drop-in is still there: %v", err)
	}
	if h.called != nil {
		t.Errorf("called %q", h.called)
	}
}

// TestUndoKeepsOthers checks that other drop-ins stay, and that a drop-in goes although its service is gone.
func TestUndoKeepsOthers(t *testing.T) {
	h := newHost(t)
	const other = "etc/systemd/system/web.service.d/a.conf"
	h.put(t, other, "[Service]\n")
	if got := h.run("--unit web"); got.status != 0 {
		t.Fatalf("%+v", got)
	}
	if err := os.Remove(filepath.Join(h.root, "lib/systemd/system/web.service")); err != nil {
		t.Fatal(err)
	}
	if got := h.run("--unit web --undo"); got.status != 0 || h.read(webDropIn) != "" || h.read(other) == "" {
		t.Errorf("%+v", got)
	}
}

// TestUnitRestarts checks that --restart has systemd use the files.
func TestUnitRestarts(t *testing.T) {
	h := newHost(t)
	got := h.run("--unit web@ --restart")
	want := []string{"systemctl daemon-reload", "systemctl is-active web@*.service", "systemctl try-restart web@*.service"}
	if diff := cmp.Diff(want, h.called); diff != "" || got.out != "wrote /etc/systemd/system/web@.service.d/zz-smc.conf\n" {
		t.Errorf("%+v %s", got, diff)
	}
	for state, restarts := range map[string]bool{"inactive": false, "failed": false, "": false, "activating": true} {
		h.called = nil
		h.answers["systemctl"] = func(args []string) (string, error) {
			if args[0] == "is-active" {
				return state + "\n", errors.New("exit status 3")
			}
			return "", nil
		}
		got = h.run("--unit web --restart")
		restarted := slices.Contains(h.called, "systemctl try-restart web.service")
		reported := strings.HasSuffix(got.out, "web.service does not run, so it was not restarted.\n")
		if got.status != 0 || restarted != restarts || reported == restarts {
			t.Errorf("%s: %+v, called %q", state, got, h.called)
		}
	}
	h.answers["systemctl"] = func([]string) (string, error) { return "System has not been booted\n", errors.New("exit status 1") }
	got = h.run("--unit web --restart")
	if got.status != 1 || !strings.HasSuffix(got.err, "smc_run: the files are in place, but 'systemctl daemon-reload' failed: System has not been booted\n") {
		t.Errorf("%+v", got)
	}
}

// TestUnitIsVerified checks that messages which the drop-in causes are errors, and others are not.
func TestUnitIsVerified(t *testing.T) {
	for _, test := range []struct{ before, after, want string }{
		{"a.service: old", "a.service: old", ""},
		{"a.service: old", "", ""},
		{"", "DIR/web.service.d/zz-smc.conf:4: bad", "systemd does not accept the drop-in: web.service.d/zz-smc.conf:4: bad"},
		{
			"", "Failed to parse address family, ignoring: AF_SMC",
			"systemd does not accept the drop-in: Failed to parse address family, ignoring: AF_SMC: this systemd does not know AF_SMC (it needs a C library from " +
				"glibc 2.26 on when it is built): update it, or lift the restriction with an empty RestrictAddressFamilies= in a drop-in of your own",
		},
	} {
		h := newHost(t)
		h.answers["systemd-analyze"] = func(args []string) (string, error) {
			unit := args[len(args)-1]
			text, err := os.ReadFile(unit + ".d/zz-smc.conf")
			if err != nil {
				t.Error(err)
			}
			if len(text) == 0 {
				return test.before, nil
			}
			return strings.ReplaceAll(test.after, "DIR", filepath.Dir(unit)), nil
		}
		got := h.run("--unit web")
		if want := map[bool]string{true: "", false: "smc_run: " + test.want + "\n"}[test.want == ""]; got.err != want {
			t.Errorf("%+v, want %s", got, want)
		}
		if written := h.read(webDropIn) != ""; written != (test.want == "") || len(h.called) != 2 {
			t.Errorf("%s: written %v; called %q", test.want, written, h.called)
		}
	}
}

// TestUnitBySystemd checks drop-ins with the real systemd-analyze.
func TestUnitBySystemd(t *testing.T) {
	need.Programs(t, "systemd-analyze")
	h := newHost(t)
	h.answers["systemd-analyze"] = func(args []string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", args...).CombinedOutput()
		return string(out), err
	}
	h.put(t, "lib/systemd/system/bad.service", "[Service]\nType=simple\nExecStart=/bin/true\n")
	h.put(t, "etc/systemd/system/bad.service.d/a.conf", "[Service]\nExecStart=\nExecStart=/bin/true ; @/bin/true \"a b\"\n")
	for args, want := range map[string]string{
		"--unit web": "", "--unit web@": "", "--unit web@a --method seccomp": "",
		// systemd refuses two commands already without the drop-in, with the same words.
		"--unit bad": "",
	} {
		if got := h.run(args); got.err != want || got.status != 0 {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

// TestBadUnits checks the line on standard error, and that nothing is written.
func TestBadUnits(t *testing.T) {
	const usage = "; see 'smc_run --help'"
	h := newHost(t)
	h.put(t, "etc/systemd/system/mine.service", "[Service]\nExecStart=/usr/bin/prog\n")
	h.put(t, "etc/systemd/system/mine.service.d/zz-smc.conf", "[Service]\n")
	for args, want := range map[string]string{
		"--unit wbe":                "1 wbe.service: there is no such service; did you mean web, web@?",
		"--unit web.socket":         `2 "web.socket" is a socket unit, which runs no program: name its service` + usage,
		"--unit a/b":                `2 "a/b" is not the name of a service, such as redis-server or postgresql@15-main` + usage,
		"--unit=":                   `2 "" is not the name of a service, such as redis-server or postgresql@15-main` + usage,
		"--unit":                    "2 flag needs an argument: --unit" + usage,
		"--unit web prog":           `2 --unit and a command ("prog") exclude each other: the service has its own command` + usage,
		"--unit web -N blue":        "2 --unit and --netns exclude each other: set NetworkNamespacePath= in the service" + usage,
		"--unit web --argv0 x":      "2 --unit and --argv0 exclude each other: the service has its own (the prefix @)" + usage,
		"--unit web --check --rest": "2 --check and --restart exclude each other" + usage,
		"--undo prog":               "2 --undo is for services: add --unit NAME" + usage,
		"--check":                   "2 --check is for services: add --unit NAME" + usage,
		"--unit web --port x":       `2 --port: "x" is not a port from 1 to 65535, nor a range such as 8000-8100` + usage,
		"--unit mine":               "1 /etc/systemd/system/mine.service.d/zz-smc.conf: not written by 'smc_run --unit': rename or remove it first",
		"--unit mine --undo":        "1 /etc/systemd/system/mine.service.d/zz-smc.conf: not written by 'smc_run --unit': rename or remove it first",
	} {
		got := h.run(args)
		if status := int(want[0] - '0'); got != (result{status, "", "smc_run: " + want[2:] + "\n"}) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	if err := os.Remove(filepath.Join(h.root, "usr/bin/smc_run")); err != nil {
		t.Fatal(err)
	}
	want := "smc_run: smc_run is not in /usr/bin, /usr/local/bin: install it there, so that systemd can start it\n"
	if got := h.run("--unit web"); got != (result{1, "", want}) {
		t.Errorf("%+v", got)
	}
	if h.read(webDropIn) != "" {
		t.Error("a drop-in was written")
	}
}

// TestSupervises checks which programs of services smc_run starts a supervisor for.
func TestSupervises(t *testing.T) {
	h := newHost(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, filepath.Join(h.root, "usr/bin/goprog")); err != nil {
		t.Fatal(err)
	}
	sys := &system{
		root: h.root, prefixes: []string{h.root + "/usr/local", h.root + "/usr"},
		directory: func() (string, error) { return h.root + "/usr/bin", nil },
	}
	for _, test := range []struct {
		method, path string
		want         bool
	}{
		{methodAuto, "/usr/bin/prog", false},
		{methodAuto, "prog", false},
		{methodAuto, "/usr/bin/goprog", true},
		{methodAuto, "goprog", true},
		{methodAuto, "", true},
		{methodAuto, "/no/such", true},
		{"preload", "/usr/bin/goprog", false},
		{"seccomp", "/usr/bin/prog", true},
	} {
		o := &options{method: test.method}
		if got := o.supervises(sys, test.path); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}

// TestArgv0 checks that the program gets another name.
func TestArgv0(t *testing.T) {
	dir := dirs(t)
	m := &machine{}
	if got := runTool(m, dir, dir+"/own", "--argv0", "-other", "prog", "x"); got != (result{}) || len(m.executed) != 1 ||
		!strings.HasPrefix(m.executed[0], `exec DIR/bin/prog ["-other" "x"]`) {
		t.Errorf("%+v %q", got, m.executed)
	}
}
