// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/convert"
	"github.com/smckit/smckit/internal/seccomp"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// machine is a fake system, which records programs instead of executing them.
type machine struct {
	environ  []string
	probe    error
	execErr  []error // of consecutive calls of exec
	limits   map[string]int
	executed []string // the recorded programs
}

func (m *machine) exec(how string, p seccomp.Program, more ...string) error {
	slices.Sort(p.Env)
	m.executed = append(m.executed, fmt.Sprintf("%s %s %q %q%s", how, p.Path, p.Argv, p.Env, strings.Join(more, "")))
	if len(m.execErr) == 0 {
		return nil
	}
	err := m.execErr[0]
	m.execErr = m.execErr[1:]
	return err
}

// dirs creates a directory with programs, dir/bin, and one with this program and its library, dir/own.
func dirs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, sub := range []string{"bin", "bin/sub", "own", "own32", "own32/lib32"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]struct {
		text string
		mode os.FileMode
	}{
		"bin/prog":                   {"#!/bin/sh\n", 0o755},
		"bin/text":                   {"exit 0\n", 0o755},
		"bin/plain":                  {"#!/bin/sh\n", 0o644},
		"bin/lost":                   {"#!/no/such/interpreter\n", 0o755},
		"own/" + libraryName:         {"", 0o755},
		"own32/lib32/" + libraryName: {"", 0o755},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(file.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(self, dir+"/bin/goprog"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// result is the outcome of a command line.
type result struct {
	status   int
	out, err string
}

// system returns the machine as the command uses it. The library is in the directory own.
func (m *machine) system(dir, own string, environ []string) *system {
	return &system{
		environ:   func() []string { return environ },
		directory: func() (string, error) { return own, nil },
		prefixes:  []string{dir + "/local", dir + "/usr"},
		probe:     func() error { return m.probe },
		absent:    func() string { return "run 'modprobe smc' as root" },
		limit:     func(name string) int { return m.limits[name] },
		exec:      func(p seccomp.Program) error { return m.exec("exec", p) },
		execSupervised: func(p seccomp.Program, calls seccomp.Calls, supervisor []string) error {
			return m.exec("supervised", p, fmt.Sprintf(" %d %q", calls, supervisor))
		},
		supervise: func(o *options) error {
			o.command = nil
			m.executed = append(m.executed, fmt.Sprintf("supervise %+v", *o))
			return nil
		},
	}
}

// runTool runs smc_run on a machine. It replaces the directory by DIR in the output and in the recorded programs.
func runTool(m *machine, dir, own string, args ...string) result {
	var out, errOut bytes.Buffer
	environ := append([]string{"PATH=" + dir + "/bin:/no/such", "HOME=/root"}, m.environ...)
	env := &cli.Env{
		In: strings.NewReader(""), Out: &out, Err: &errOut,
		Getenv: func(name string) string {
			for _, e := range environ {
				if value, ok := strings.CutPrefix(e, name+"="); ok {
					return value
				}
			}
			return ""
		},
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
	}
	sys := m.system(dir, own, environ)
	tool := Tool
	tool.New = func(env *cli.Env) *cobra.Command { return newCommand(env, sys) }
	status := cli.Run(context.Background(), tool, env, args)
	clean := strings.NewReplacer(dir, "DIR")
	for i := range m.executed {
		m.executed[i] = clean.Replace(m.executed[i])
	}
	return result{status, clean.Replace(out.String()), clean.Replace(errOut.String())}
}

// The environment that runTool uses, with the variables that smc_run always sets for the library.
const (
	home    = `"HOME=/root"`
	preEnv  = `"LD_PRELOAD=DIR/own/libsmc-preload.so.1"`
	pathEnv = `"PATH=DIR/bin:/no/such"`
	quiet   = `"SMC_DEBUG=0"`
)

func TestExecutes(t *testing.T) {
	dir := dirs(t)
	const (
		plain = `exec DIR/bin/prog ["prog"] [` + home + ` ` + preEnv + ` ` + pathEnv + ` ` + quiet + `]`
		super = `supervised DIR/bin/goprog ["goprog"] [` + home + ` ` + pathEnv + `] `
		self  = `["smc_run" "--supervise" "-r" "0" "-t" "0"`
	)
	for _, test := range []struct {
		args    string
		environ string
		want    string
	}{
		{"prog", "", plain},
		{"-- prog", "", plain},
		{"--method preload prog", "", plain},
		{"--meth=preload prog", "", plain},
		{
			"prog --help -d --port x -- y", "",
			`exec DIR/bin/prog ["prog" "--help" "-d" "--port" "x" "--" "y"] [` + home + ` ` + preEnv + ` ` + pathEnv + ` ` + quiet + `]`,
		},
		{"DIR/bin/prog", "", `exec DIR/bin/prog ["DIR/bin/prog"] [` + home + ` ` + preEnv + ` ` + pathEnv + ` ` + quiet + `]`},
		{
			"-q -r 64k -t 1M --require prog", "",
			`exec DIR/bin/prog ["prog"] [` + home + ` ` + preEnv + ` ` + pathEnv +
				` ` + quiet + ` "SMC_QUIET=1" "SMC_RCVBUF=65536" "SMC_REQUIRE=1" "SMC_SNDBUF=1048576"]`,
		},
		{
			"--port 80 --port 90-99 --to 10.1.2.3/8 --not ::1,22 prog", "",
			`exec DIR/bin/prog ["prog"] [` + home + ` ` + preEnv + ` ` + pathEnv +
				` ` + quiet + ` "SMC_NOT=22,::1/128" "SMC_PORT=80,90-99" "SMC_TO=10.0.0.0/8"]`,
		},
		// An smc_run started by another inherits its options, unless it has its own.
		{
			"--port 80 prog", "SMC_PORT=70 SMC_TO=10.0.0.0/8 SMC_SNDBUF=1k SMC_DEBUG=1",
			`exec DIR/bin/prog ["prog"] [` + home + ` ` + preEnv + ` ` + pathEnv +
				` ` + quiet + ` "SMC_PORT=80" "SMC_SNDBUF=1024" "SMC_TO=10.0.0.0/8"]`,
		},
		{
			"prog", "LD_PRELOAD=/a.so:/b.so _SMCKIT_NETNS=x",
			`exec DIR/bin/prog ["prog"] [` + home + ` "LD_PRELOAD=/a.so:/b.so:DIR/own/libsmc-preload.so.1" ` + pathEnv + ` ` + quiet + `]`,
		},
		{
			"prog", "LD_PRELOAD=DIR/own/libsmc-preload.so.1",
			plain,
		},
		{"goprog", "", super + `0 ` + self + `]`},
		{"--method seccomp prog", "", `supervised DIR/bin/prog ["prog"] [` + home + ` ` + pathEnv + `] 0 ` + self + `]`},
		{
			"-d -q --require -r 1 -t 2 --port 80 --to ::1 --not 22 goprog", "",
			super + `1 ["smc_run" "--supervise" "-r" "1" "-t" "2" "--port" "80" "--to" "::1/128" "--not" "22" "-d" "-q" "--require"]`,
		},
		{"--supervise -r 1 -t 2 --port 80 -q", "", `supervise {method:auto receive:1 send:2 rules:{Only:{Ports:[{First:80 Last:80}] Networks:[]} ` +
			`Not:{Ports:[] Networks:[]}} debug:false quiet:true require:false command:[] argv0: called:smc_run}`},
	} {
		m := &machine{environ: strings.Fields(strings.ReplaceAll(test.environ, "DIR", dir))}
		got := runTool(m, dir, dir+"/own", strings.Fields(strings.ReplaceAll(test.args, "DIR", dir))...)
		if strings.HasPrefix(test.args, "-d") {
			got.err = strings.Replace(got.err, "smc_run: method seccomp: DIR/bin/goprog is a Go program\n", "", 1)
		}
		if got != (result{}) {
			t.Errorf("%s: %+v", test.args, got)
		}
		if diff := cmp.Diff([]string{test.want}, m.executed); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.args, diff)
		}
	}
}

func TestDebugNamesTheMethod(t *testing.T) {
	dir := dirs(t)
	m := &machine{}
	got := runTool(m, dir, dir+"/own", "-d", "--method", "preload", "prog")
	if want := "smc_run: method preload: chosen by --method\n"; got.err != want || !strings.Contains(m.executed[0], `"SMC_DEBUG=1"`) {
		t.Errorf("%+v %q", got, m.executed)
	}
}

func TestWithoutLibrary(t *testing.T) {
	dir := dirs(t)
	m := &machine{}
	if got := runTool(m, dir, dir+"/bin", "prog"); got != (result{}) || !strings.HasPrefix(m.executed[0], "supervised ") {
		t.Errorf("auto: %+v %q", got, m.executed)
	}
	m = &machine{}
	got := runTool(m, dir, dir+"/bin", "--method", "preload", "prog")
	want := "smc_run: libsmc-preload.so.1 for 64 bits is not in DIR/bin, DIR/lib, DIR/lib/TRIPLET, DIR/lib64, DIR/local/lib, " +
		"DIR/local/lib/TRIPLET, DIR/local/lib64, DIR/usr/lib, DIR/usr/lib/TRIPLET or DIR/usr/lib64: install the package libsmc-preload, " +
		"or run 'make install', or use --method seccomp\n"
	want = strings.ReplaceAll(want, "TRIPLET", multiarch)
	if got.status != 1 || got.err != want || m.executed != nil {
		t.Errorf("preload: %+v %q", got, m.executed)
	}
}

func TestFindLibrary(t *testing.T) {
	dir := dirs(t)
	for own, want := range map[string]string{"own32": "own32/lib32", "own": ""} {
		path, err := findLibrary(filepath.Join(dir, own), nil, 32)
		if want == "" && err == nil || want != "" && path != filepath.Join(dir, want, libraryName) {
			t.Errorf("for 32 bits, %s: %q, %v", own, path, err)
		}
	}
	// The binary of this test has the word size of this machine.
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if otherBits(self, strconv.IntSize) || !otherBits(self, 96-strconv.IntSize) {
		t.Errorf("%s is not one of %d bits", self, strconv.IntSize)
	}
	blank := filepath.Join(dir, "a b")
	if err := os.Rename(filepath.Join(dir, "own"), blank); err != nil {
		t.Fatal(err)
	}
	if _, err := findLibrary(blank, nil, 64); err == nil || !strings.Contains(err.Error(), "must not contain blanks or colons") {
		t.Errorf("a blank: %v", err)
	}
	if err := os.Mkdir(dir+"/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(blank, libraryName), filepath.Join(dir, "lib", libraryName)); err != nil {
		t.Fatal(err)
	}
	if path, err := findLibrary(dir+"/bin", nil, 64); err != nil || path != filepath.Join(dir, "lib", libraryName) {
		t.Errorf("bin and lib: %q, %v", path, err)
	}
}

func TestWithoutSMC(t *testing.T) {
	dir := dirs(t)
	const text = "AF_SMC is not available (address family not supported by protocol)"
	for _, test := range []struct {
		args   string
		status int
		err    string // prefix
		quiet  bool   // does the executed program get the option or variable for quiet?
	}{
		{"prog", 0, "smc_run: warning: " + text + ", so sockets are TCP: ", true},
		{"goprog", 0, "smc_run: warning: " + text + ", so sockets are TCP: ", true},
		{"-q prog", 0, "", true},
		{"--require prog", 1, "smc_run: " + text + ": run 'modprobe smc' ", false},
		{"-q --require goprog", 1, "smc_run: " + text + ": run 'modprobe smc' ", false},
	} {
		m := &machine{probe: unix.EAFNOSUPPORT}
		got := runTool(m, dir, dir+"/own", strings.Fields(test.args)...)
		executed := strings.Join(m.executed, "")
		quiet := strings.Contains(executed, "SMC_QUIET=1") || strings.Contains(executed, `"-q"`)
		if got.status != test.status || !strings.HasPrefix(got.err, test.err) || (got.err == "") != (test.err == "") || quiet != test.quiet ||
			strings.Count(got.err, "\n") > 1 || (executed == "") != (test.status != 0) {
			t.Errorf("%s: %+v %q", test.args, got, m.executed)
		}
	}
}

func TestBuffersBeyondTheLimit(t *testing.T) {
	dir := dirs(t)
	m := &machine{limits: map[string]int{"rmem_max": 212992, "wmem_max": 212992}}
	got := runTool(m, dir, dir+"/own", "-r", "1m", "-t", "200k", "prog")
	want := "smc_run: warning: -r 1048576 is more than this user may set: buffers get 212992, the value of net.core.rmem_max\n"
	if got.status != 0 || got.err != want || len(m.executed) != 1 {
		t.Errorf("%+v %q", got, m.executed)
	}
}

// TestPreloadHasNoEffect uses --method preload for a program that does not load libraries.
func TestPreloadHasNoEffect(t *testing.T) {
	dir := dirs(t)
	m := &machine{}
	got := runTool(m, dir, dir+"/own", "--method", "preload", "goprog")
	if want := "smc_run: warning: DIR/bin/goprog is a Go program: a preloaded library has no effect on it\n"; got.err != want || len(m.executed) != 1 {
		t.Errorf("%+v %q", got, m.executed)
	}
	m = &machine{}
	got = runTool(m, dir, dir+"/own", "--method", "preload", "--require", "goprog")
	want := "smc_run: DIR/bin/goprog is a Go program: a preloaded library has no effect on it, so use --method auto or seccomp\n"
	if got != (result{1, "", want}) || m.executed != nil {
		t.Errorf("%+v %q", got, m.executed)
	}
}

// TestBadInput checks the status and the one line on standard error, and that nothing is executed.
func TestBadInput(t *testing.T) {
	dir := dirs(t)
	const usage = "; see 'smc_run --help'"
	for _, test := range []struct {
		args   []string
		status int
		err    string
	}{
		{nil, 2, "no command given" + usage},
		{[]string{"-d"}, 2, "no command given" + usage},
		{[]string{"--"}, 2, "no command given" + usage},
		{[]string{"-x", "prog"}, 2, "unknown shorthand flag: 'x' in -x" + usage},
		{[]string{"--nope", "prog"}, 2, "unknown flag: --nope" + usage},
		{[]string{"-r"}, 2, "flag needs an argument: 'r' in -r" + usage},
		{[]string{"-r", "12x", "prog"}, 2, `-r "12x": give a size from 0 to 2047m, such as 262144, 256k or 4m` + usage},
		{[]string{"-r12|", "prog"}, 2, `-r "12|": give a size from 0 to 2047m, such as 262144, 256k or 4m` + usage},
		{[]string{"-t", "2048m", "prog"}, 2, `-t "2048m": give a size from 0 to 2047m, such as 262144, 256k or 4m` + usage},
		{[]string{"-t", "-1", "prog"}, 2, `-t "-1": give a size from 0 to 2047m, such as 262144, 256k or 4m` + usage},
		{[]string{"-t", "k", "prog"}, 2, `-t "k": give a size from 0 to 2047m, such as 262144, 256k or 4m` + usage},
		{[]string{"--method", "magic", "prog"}, 2, `--method "magic": choose auto, preload or seccomp` + usage},
		{[]string{"--method", "none", "prog"}, 2, `--method "none": choose auto, preload or seccomp` + usage},
		{[]string{"--port", "0", "prog"}, 2, `--port: "0" is not a port from 1 to 65535, nor a range such as 8000-8100` + usage},
		{[]string{"--port", "90-80", "prog"}, 2, `--port: "90-80" ends before it begins: give the lower port first` + usage},
		{[]string{"--port", "", "prog"}, 2, `--port: "" is not a port from 1 to 65535, nor a range such as 8000-8100` + usage},
		{[]string{"--to", "10.0.0.0/40", "prog"}, 2, `--to: "10.0.0.0/40" is not an address, nor a network such as 10.0.0.0/8 or fd00::/8` + usage},
		{[]string{"--not", "a\nb", "prog"}, 2, `--not: "a\nb" is not a port from 1 to 65535, nor a range such as 8000-8100` + usage},
		{[]string{"nosuch"}, 127, "nosuch: command not found: it is not in a directory of PATH"},
		{[]string{"-d", "nosuch"}, 127, "nosuch: command not found: it is not in a directory of PATH"},
		{[]string{""}, 127, `"": command not found: the name is empty`},
		{[]string{"./nosuch"}, 127, "./nosuch: no such file: check the path"},
		{[]string{"DIR/bin/prog/x"}, 127, "DIR/bin/prog/x: no such file: check the path"},
		{[]string{"DIR/bin"}, 126, "DIR/bin: is a directory: name a program in it"},
		{[]string{"sub"}, 127, "sub: command not found: it is not in a directory of PATH"},
		{[]string{"plain"}, 126, "DIR/bin/plain: permission denied: it must be a file that you may execute ('ls -l' shows its mode)"},
		{[]string{"DIR/bin/plain"}, 126, "DIR/bin/plain: permission denied: it must be a file that you may execute ('ls -l' shows its mode)"},
		{[]string{"/dev/null"}, 126, "/dev/null: permission denied: it must be a file that you may execute ('ls -l' shows its mode)"},
		{[]string{"-N", "blue", "prog"}, 1, "entered blue"},
	} {
		m := &machine{}
		args := slices.Clone(test.args)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "DIR", dir)
		}
		want := result{test.status, "", "smc_run: " + test.err + "\n"}
		if got := runTool(m, dir, dir+"/own", args...); got != want || m.executed != nil {
			t.Errorf("%q: %+v, want %+v; executed %q", test.args, got, want, m.executed)
		}
	}
}

// TestVariablesThatMakeNoSense checks that invalid variables are refused like invalid options.
func TestVariablesThatMakeNoSense(t *testing.T) {
	dir := dirs(t)
	for _, test := range []struct{ variable, want string }{
		{"SMC_PORT=x", `SMC_PORT: "x" is not a port from 1 to 65535, nor a range such as 8000-8100`},
		{"SMC_RCVBUF=x", `-r "x": give a size from 0 to 2047m, such as 262144, 256k or 4m`},
	} {
		m := &machine{environ: []string{test.variable}}
		got := runTool(m, dir, dir+"/own", "prog")
		if got != (result{2, "", "smc_run: " + test.want + "; see 'smc_run --help'\n"}) || m.executed != nil {
			t.Errorf("%s: %+v %q", test.variable, got, m.executed)
		}
	}
}

// TestKernelRefuses checks the message if the kernel refuses to execute the command.
func TestKernelRefuses(t *testing.T) {
	dir := dirs(t)
	refused := func(err error) error { return &seccomp.ExecError{Path: "x", Err: err} }
	noProc := &os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: unix.ENOENT}
	for _, test := range []struct {
		args   string
		err    error
		status int
		want   string
	}{
		{"prog", refused(unix.EACCES), 126, "DIR/bin/prog: permission denied: it must be a file that you may execute ('ls -l' shows its mode)"},
		{"prog", refused(unix.ENOEXEC), 126, "DIR/bin/prog: is not a program that this machine can execute ('file' shows its type)"},
		{"lost", refused(unix.ENOENT), 126, "DIR/bin/lost: its interpreter does not exist: install the program that its first line names, or that 'file' shows"},
		{"prog", refused(unix.E2BIG), 126, "DIR/bin/prog: argument list too long"},
		{"goprog", refused(unix.ETXTBSY), 126, "DIR/bin/goprog: text file busy"},
		// Errors of the supervisor are not reported as errors of the program.
		{"goprog", fmt.Errorf("the supervisor has gone: %w", unix.ENOENT), 1, "the supervisor has gone: no such file or directory"},
		{"goprog", fmt.Errorf("the supervisor has gone: %w", noProc), 1, "the supervisor has gone: fork/exec /proc/self/exe: no such file or directory"},
	} {
		m := &machine{execErr: []error{test.err}}
		want := result{test.status, "", "smc_run: " + test.want + "\n"}
		if got := runTool(m, dir, dir+"/own", test.args); got != want {
			t.Errorf("%s: %+v, want %+v", test.args, got, want)
		}
	}
}

// TestWithoutSupervisor checks that programs run over TCP with a warning if the system cannot supervise them.
func TestWithoutSupervisor(t *testing.T) {
	dir := dirs(t)
	noProc := &os.PathError{Op: "fork/exec", Path: "/proc/self/exe", Err: unix.ENOENT}
	for _, test := range []struct {
		args string
		err  error
		want string // in standard error
		runs bool
	}{
		{
			"goprog", fmt.Errorf("starting the supervisor: %w", noProc),
			"warning: the method seccomp is not available: starting the supervisor: fork/exec /proc/self/exe: no such file or directory: " +
				"sockets stay TCP", true,
		},
		{"-q goprog", noProc, "", true},
		{
			"--require goprog", errors.New("too old"),
			"the method seccomp is not available: too old", false,
		},
		{
			"goprog", fmt.Errorf("no: %w", seccomp.ErrSupervised),
			"warning: the method seccomp is not available: no: system calls of this process are supervised already, by another smc_run " +
				"or a container; --method preload works for dynamically linked programs: that supervisor decides whether sockets are AF_SMC", true,
		},
	} {
		m := &machine{execErr: []error{&seccomp.UnavailableError{Err: test.err}}}
		want := result{}
		if test.want != "" {
			want.err = "smc_run: " + test.want + "\n"
		}
		if !test.runs {
			want.status = 1
		}
		if got := runTool(m, dir, dir+"/own", strings.Fields(test.args)...); got != want {
			t.Errorf("%s: %+v, want %+v", test.args, got, want)
		}
		if runs := len(m.executed) == 2 && strings.HasPrefix(m.executed[1], "exec DIR/bin/goprog "); runs != test.runs {
			t.Errorf("%s: %q", test.args, m.executed)
		}
	}
}

// TestLibraryWithoutProc finds the library although smc_run does not know its own directory.
func TestLibraryWithoutProc(t *testing.T) {
	dir := dirs(t)
	if err := os.Mkdir(dir+"/lib", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "own", libraryName), filepath.Join(dir, "lib", libraryName)); err != nil {
		t.Fatal(err)
	}
	sys := &system{directory: func() (string, error) { return "", unix.ENOENT }, prefixes: []string{dir}}
	o := &options{method: methodAuto}
	choice := convert.Choice{Method: convert.Preload, Bits: 64}
	if path, err := o.library(sys, &choice); err != nil || path != filepath.Join(dir, "lib", libraryName) {
		t.Errorf("%q, %v", path, err)
	}
}

// TestScriptWithoutInterpreter checks that a shell runs a script without a #! line.
func TestScriptWithoutInterpreter(t *testing.T) {
	dir := dirs(t)
	m := &machine{execErr: []error{&seccomp.ExecError{Path: "x", Err: unix.ENOEXEC}}}
	got := runTool(m, dir, dir+"/own", "text", "-x", "y")
	if got != (result{}) || len(m.executed) != 2 || !strings.HasPrefix(m.executed[1], `exec /bin/sh ["/bin/sh" "DIR/bin/text" "-x" "y"]`) {
		t.Errorf("%+v %q", got, m.executed)
	}
	m = &machine{}
	got = runTool(m, dir, dir+"/own", "--method", "seccomp", "text", "-x", "y")
	if got != (result{}) || len(m.executed) != 1 || !strings.HasPrefix(m.executed[0], `supervised /bin/sh ["/bin/sh" "DIR/bin/text" "-x" "y"]`) {
		t.Errorf("%+v %q", got, m.executed)
	}
}

func TestLookupInEmptyDirectoryOfPath(t *testing.T) {
	t.Chdir(dirs(t) + "/bin")
	for _, path := range []string{":/no/such", ".", "/no/such:"} {
		if file, err := lookup("prog", path); err != nil || file != "./prog" {
			t.Errorf("PATH=%s: %q, %v", path, file, err)
		}
	}
	if file, err := lookup("sh", ""); err != nil || filepath.Base(file) != "sh" {
		t.Errorf("no PATH: %q, %v", file, err)
	}
}

func TestHelpAndVersion(t *testing.T) {
	for args, want := range map[string]string{
		"--help": "EXIT STATUS", "-h": "METHODS", "-v": "smc_run utility, smckit-", "completion bash": "bash completion",
		"__complete --method=p": "preload\n", "__complete --m": "--method\t",
	} {
		m := &machine{}
		got := runTool(m, t.TempDir(), "/no/such", strings.Fields(args)...)
		if got.status != 0 || !strings.Contains(got.out, want) || m.executed != nil {
			t.Errorf("%s: %+v", args, got)
		}
	}
}

func TestCompletesPrograms(t *testing.T) {
	dir := dirs(t)
	for args, want := range map[string]string{
		"__complete p":         "prog\n:0\n", // plain is not executable
		"__complete -d -r 1 t": "text\n:0\n",
		"__complete prog -d p": ":0\n",
		"__complete ./p":       ":0\n",
	} {
		if got := runTool(&machine{}, dir, "/no/such", strings.Fields(args)...); got.status != 0 || got.out != want {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
}

// TestMethodsAreTheOnesToChoose checks that the option accepts exactly the methods of package convert.
func TestMethodsAreTheOnesToChoose(t *testing.T) {
	for _, method := range []convert.Method{convert.Preload, convert.Seccomp} {
		if !strings.Contains(long, "\n  "+string(method)) {
			t.Errorf("%s is not in the help", method)
		}
	}
}
