// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/convert"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/internal/seccomp"
	"golang.org/x/sys/unix"
)

// run replaces this process with the command.
func run(env *cli.Env, sys *system, o *options) error {
	err := execute(env, sys, o)
	var ce *commandError
	if errors.As(err, &ce) {
		env.Note("%s", ce.text)
		return &cli.StatusError{Status: ce.status}
	}
	return err
}

func execute(env *cli.Env, sys *system, o *options) error {
	look := func(name string) (string, error) { return lookup(name, env.Getenv("PATH")) }
	path, err := look(o.command[0])
	if err != nil {
		return err
	}
	w := warner{env, o}
	choice, err := o.choose(w, path, look)
	if err != nil {
		return err
	}
	library, err := o.library(sys, &choice)
	if err != nil {
		return err
	}
	if o.debug {
		env.Note("method %s: %s", choice.Method, choice.Why)
	}
	warned, err := w.available(sys)
	if err != nil {
		return err
	}
	w.sizes(sys)
	p := seccomp.Program{Path: path, Argv: o.argv(), Env: withoutVar(sys.environ(), "_SMCKIT_NETNS")}
	switch choice.Method {
	case convert.Preload:
		return o.preload(sys, p, library, warned)
	case convert.Seccomp:
		return o.execSupervised(sys, w, p, warned)
	}
	return o.execPlain(sys, w, p, choice)
}

// choose returns the method that was asked for, or the one that fits the program.
func (o *options) choose(w warner, path string, look func(string) (string, error)) (convert.Choice, error) {
	choice, err := convert.Choose(path, look)
	if err != nil {
		return choice, cannotRun(path, err)
	}
	if o.method == string(convert.Preload) && choice.Method != convert.Preload {
		const effect = "a preloaded library has no effect on it"
		if o.require {
			return choice, remedy.Errorf("so use --method auto or seccomp", "%s: %s,", choice.Why, effect)
		}
		w.warn("%s: %s", choice.Why, effect)
	}
	if o.method != methodAuto {
		choice.Method, choice.Why = convert.Method(o.method), "chosen by --method"
	}
	return choice, nil
}

// library finds the library for the method preload. If there is none and the user has not chosen the method, it switches to
// seccomp.
func (o *options) library(sys *system, choice *convert.Choice) (string, error) {
	if choice.Method != convert.Preload {
		return "", nil
	}
	own, err := sys.directory()
	if err != nil {
		// Without /proc, the directory is unknown: assume an installed one.
		own = filepath.Join(sys.prefixes[0], "bin")
	}
	path, err := findLibrary(own, sys.prefixes, choice.Bits)
	if err != nil && o.method == methodAuto {
		choice.Method, choice.Why = convert.Seccomp, "the preload library is not installed"
		return "", nil
	}
	return path, err
}

// preload executes the program with the preload library.
func (o *options) preload(sys *system, p seccomp.Program, library string, warned bool) error {
	debug := "0"
	if o.debug {
		debug = "1"
	}
	old := ""
	for _, e := range p.Env {
		if value, ok := strings.CutPrefix(e, envPreload+"="); ok {
			old = value
		}
	}
	set := append(o.rules.Env(), envPreload+"="+preload(old, library), envDebug+"="+debug)
	for _, v := range []struct {
		name, value string
		on          bool
	}{
		{envQuiet, "1", o.quiet || warned},
		{envRequire, "1", o.require},
		{envSend, strconv.Itoa(o.send), o.send > 0},
		{envReceive, strconv.Itoa(o.receive), o.receive > 0},
	} {
		if v.on {
			set = append(set, v.name+"="+v.value)
		}
	}
	p.Env = withVars(p.Env, set)
	return execOrShell(p, sys.exec)
}

// execPlain executes a program that cannot have AF_SMC sockets by any method.
func (o *options) execPlain(sys *system, w warner, p seccomp.Program, choice convert.Choice) error {
	if o.require {
		return remedy.Errorf("start it as the user whose privileges it gains", "%s: it cannot have AF_SMC sockets;", choice.Why)
	}
	w.warn("%s: its sockets stay TCP; start it as the user whose privileges it gains", choice.Why)
	return execOrShell(p, sys.exec)
}

// execSupervised executes the program under a supervisor, or without one where the method is not available.
func (o *options) execSupervised(sys *system, w warner, p seccomp.Program, warned bool) error {
	calls := seccomp.Sockets
	if o.rules.Any() {
		calls = seccomp.Addresses
	}
	// seccomp.Exec can be tried only once, so find out before whether the file needs a shell.
	if isText(p.Path) {
		p = viaShell(p)
	}
	err := sys.execSupervised(p, calls, o.supervisor(warned))
	var unavailable *seccomp.UnavailableError
	if !errors.As(err, &unavailable) {
		return execError(p.Path, err)
	}
	hint, result := "", "sockets stay TCP"
	if errors.Is(err, seccomp.ErrSupervised) {
		hint = ", by another smc_run or a container; --method preload works for dynamically linked programs"
		result = "that supervisor decides whether sockets are AF_SMC"
	}
	if o.require {
		return fmt.Errorf("the method seccomp is not available: %w%s", err, hint)
	}
	w.warn("the method seccomp is not available: %v%s: %s", err, hint, result)
	return execOrShell(p, sys.exec)
}

// supervisor returns the command line of the supervisor. Its name makes smckit, too, run smc_run. The supervisor is quiet if the user has
// already been warned.
func (o *options) supervisor(warned bool) []string {
	argv := []string{toolName, "--supervise", "-r", strconv.Itoa(o.receive), "-t", strconv.Itoa(o.send)}
	if o.called != toolName {
		argv = append(argv, "--called", o.called)
	}
	argv = append(argv, o.ruleArguments()...)
	for _, v := range []struct {
		option string
		on     bool
	}{{"-d", o.debug}, {"-q", o.quiet || warned}, {"--require", o.require}} {
		if v.on {
			argv = append(argv, v.option)
		}
	}
	return argv
}

// ruleArguments returns the rules as options.
func (o *options) ruleArguments() []string {
	var argv []string
	for _, v := range o.rules.Env() {
		name, value, _ := strings.Cut(v, "=")
		option := map[string]string{convert.EnvPort: "--port", convert.EnvTo: "--to", convert.EnvNot: "--not"}[name]
		argv = append(argv, option, value)
	}
	return argv
}

// execOrShell executes a program. If the kernel does not recognise the file and it is text, a shell interprets it, as shells
// do.
func execOrShell(p seccomp.Program, exec func(seccomp.Program) error) error {
	err := exec(p)
	if errors.Is(err, unix.ENOEXEC) && isText(p.Path) {
		p = viaShell(p)
		err = exec(p)
	}
	return execError(p.Path, err)
}

// isText reports whether a file is a script without a #! line.
func isText(path string) bool {
	f, err := convert.Inspect(path)
	return err == nil && f.Kind == convert.KindText
}

// viaShell returns the command that interprets a script with a shell.
func viaShell(p seccomp.Program) seccomp.Program {
	return seccomp.Program{Path: convert.Shell, Argv: append([]string{convert.Shell, p.Path}, p.Argv[1:]...), Env: p.Env}
}

// execError explains why a program cannot be executed. It returns errors that are not about the program unchanged.
func execError(path string, err error) error {
	var ee *seccomp.ExecError
	switch {
	case !errors.As(err, &ee):
		return err
	case errors.Is(ee.Err, unix.ENOENT):
		// lookup has found the file itself, so its interpreter is missing.
		return &commandError{exitCannotRun, path + ": its interpreter does not exist: install the program that its first line names, or that 'file' shows"}
	}
	return cannotRun(path, ee.Err)
}

// withVars returns an environment in which some variables are set.
func withVars(env, set []string) []string {
	out := slices.Clone(env)
	for _, v := range set {
		name, _, _ := strings.Cut(v, "=")
		out = append(withoutVar(out, name), v)
	}
	return out
}

// withoutVar returns an environment without a variable.
func withoutVar(env []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// warner warns the user if sockets will differ from what the options ask for.
type warner struct {
	env *cli.Env
	o   *options
}

func (w warner) warn(format string, args ...any) {
	if !w.o.quiet {
		w.env.Note("warning: "+format, args...)
	}
}

// available warns if AF_SMC is not available, or returns an error if it is required.
func (w warner) available(sys *system) (warned bool, err error) {
	err = sys.probe()
	if err == nil {
		return false, nil
	}
	if w.o.require {
		return false, remedy.Errorf(sys.absent(), "AF_SMC is not available (%w)", err)
	}
	if !w.o.quiet {
		w.warn("AF_SMC is not available (%v), so sockets are TCP: %s", err, sys.absent())
	}
	return true, nil
}

// sizes warns if buffers will be smaller than requested.
func (w warner) sizes(sys *system) {
	for _, b := range []struct {
		option, name string
		size         int
	}{{"-r", "rmem_max", w.o.receive}, {"-t", "wmem_max", w.o.send}} {
		if most := sys.limit(b.name); most > 0 && b.size > most {
			w.warn("%s %d is more than this user may set: buffers get %d, the value of net.core.%s", b.option, b.size, most, b.name)
		}
	}
}
