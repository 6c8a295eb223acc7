// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/convert"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/internal/unitfile"
	"github.com/spf13/pflag"
)

// unitFlags are the options that concern a service.
type unitFlags struct {
	name            string
	checkOnly, diff bool
	undo, restart   bool
}

func (f *unitFlags) define(fs *pflag.FlagSet) {
	fs.StringVar(&f.name, "unit", "", "have systemd run the service `NAME` with these options, by a drop-in")
	fs.BoolVar(&f.checkOnly, "check", false, "with --unit, only print what would change")
	fs.BoolVar(&f.diff, "diff", false, "with --unit, print the lines that are added (+) and removed (-)")
	fs.BoolVar(&f.undo, "undo", false, "with --unit, remove the drop-in")
	fs.BoolVar(&f.restart, "restart", false, "with --unit, reload systemd's files, and restart the service if it runs")
}

// check refuses options that do not go together.
func (f *unitFlags) check(fs *pflag.FlagSet, args []string) error {
	if !fs.Changed("unit") {
		for _, name := range []string{"check", "diff", "undo", "restart"} {
			if fs.Changed(name) {
				return fmt.Errorf("--%s is for services: add --unit NAME", name)
			}
		}
		return nil
	}
	switch {
	case len(args) > 0:
		return fmt.Errorf("--unit and a command (%q) exclude each other: the service has its own command", args[0])
	case fs.Changed("netns"):
		return errors.New("--unit and --netns exclude each other: set NetworkNamespacePath= in the service")
	case fs.Changed("argv0"):
		return errors.New("--unit and --argv0 exclude each other: the service has its own (the prefix @)")
	case f.checkOnly && f.restart:
		return errors.New("--check and --restart exclude each other")
	}
	var err error
	f.name, err = unitfile.ServiceName(f.name)
	return err
}

// run writes or removes the drop-in of a service.
func (f *unitFlags) run(ctx context.Context, env *cli.Env, sys *system, o *options) error {
	search := unitfile.Search{Root: sys.root}
	unit, err := search.Load(f.name)
	if f.undo && errors.Is(err, unitfile.ErrNotFound) {
		// The service may have been removed, and left its drop-in.
		unit, err = &unitfile.Unit{Name: f.name}, nil
	}
	if err != nil {
		return err
	}
	c := unitChange{env: env, sys: sys, unit: unit, path: search.DropIn(unit.Name)}
	if err := c.read(); err != nil {
		return err
	}
	if !f.undo {
		if err := c.plan(ctx, o); err != nil {
			return err
		}
	}
	if !f.checkOnly {
		if err := c.carryOut(); err != nil {
			return c.explain(err)
		}
	}
	c.report(f)
	if f.restart {
		return c.restart(ctx)
	}
	return nil
}

// unitChange is a change of a service's drop-in.
type unitChange struct {
	env      *cli.Env
	sys      *system
	unit     *unitfile.Unit
	path     string
	now, new string // the texts of the drop-in, "" if there is none
}

// read reads the drop-in that is there, and refuses one that somebody else has written.
func (c *unitChange) read() error {
	text, err := os.ReadFile(c.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return c.explain(err)
	case !unitfile.Ours(string(text)):
		return remedy.Errorf("rename or remove it first", "%s: not written by 'smc_run --unit'", c.path)
	}
	c.now = string(text)
	return nil
}

// plan makes the new text, and has systemd check it.
func (c *unitChange) plan(ctx context.Context, o *options) error {
	runner, err := c.runner(o)
	if err != nil {
		return err
	}
	text, notes, err := c.unit.DropIn(runner)
	if err != nil {
		return err
	}
	c.new = text
	for _, note := range notes {
		c.env.Note("note: %s", note)
	}
	return c.verify(ctx)
}

// runner returns the command for the drop-in.
func (c *unitChange) runner(o *options) (unitfile.Runner, error) {
	dirs := []string{filepath.Join(c.sys.prefixes[0], "bin"), filepath.Join(c.sys.prefixes[1], "bin")}
	own, err := c.sys.directory()
	if err == nil {
		dirs = append([]string{own}, slices.DeleteFunc(dirs, func(dir string) bool { return dir == own })...)
	}
	at := slices.IndexFunc(dirs, func(dir string) bool { return executable(filepath.Join(dir, toolName)) == nil })
	if at < 0 {
		return unitfile.Runner{}, remedy.Errorf("install it there, so that systemd can start it", "%s is not in %s", toolName, strings.Join(dirs, ", "))
	}
	library, _ := findLibrary(dirs[at], c.sys.prefixes, 64)
	return unitfile.Runner{
		Command:     append([]string{filepath.Join(dirs[at], toolName)}, o.arguments()...),
		Library:     library,
		SignalsLost: !c.sys.keepsSignals(),
		Supervised:  func(path string) bool { return o.supervises(c.sys, path) },
	}, nil
}

// arguments returns the options as words of a command line.
func (o *options) arguments() []string {
	var argv []string
	add := func(given bool, words ...string) {
		if given {
			argv = append(argv, words...)
		}
	}
	add(o.method != methodAuto, "--method", o.method)
	add(o.receive > 0, "-r", strconv.Itoa(o.receive))
	add(o.send > 0, "-t", strconv.Itoa(o.send))
	argv = append(argv, o.ruleArguments()...)
	add(o.debug, "-d")
	add(o.quiet, "-q")
	add(o.require, "--require")
	return argv
}

// supervises reports whether smc_run will start a supervisor for a program of a service, or may do so.
func (o *options) supervises(sys *system, path string) bool {
	if o.method != methodAuto {
		return o.method == string(convert.Seccomp)
	}
	look := func(name string) (string, error) { return lookup(name, sys.unitPath()) }
	if !strings.HasPrefix(path, "/") {
		path, _ = look(path)
	} else {
		path = filepath.Join(sys.root, path)
	}
	choice, err := convert.Choose(path, look)
	if err != nil {
		return true
	}
	if _, err := o.library(sys, &choice); err != nil {
		return true
	}
	return choice.Method == convert.Seccomp
}

// unitPath is where systemd looks for programs.
func (s *system) unitPath() string {
	var dirs []string
	for _, dir := range []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"} {
		dirs = append(dirs, filepath.Join(s.root, dir))
	}
	return strings.Join(dirs, ":")
}

// carryOut writes the new text, or removes the drop-in and its directory, if that is empty then.
func (c *unitChange) carryOut() error {
	dir := filepath.Dir(c.path)
	switch {
	case c.now == c.new:
		return nil
	case c.new != "":
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return renameio.WriteFile(c.path, []byte(c.new), 0o644)
	}
	if err := os.Remove(c.path); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// explain adds the remedy to an error of the file system.
func (c *unitChange) explain(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return remedy.Errorf("run as root", "%s: permission denied", c.path)
	}
	return err
}

// report prints what has changed, or would change, and what to do next.
func (c *unitChange) report(f *unitFlags) {
	out := c.env.Out
	if c.now == c.new {
		fmt.Fprintf(out, "unchanged: %s\n", c.state())
		return
	}
	verb := "wrote"
	if c.new == "" {
		verb = "removed"
	}
	if f.checkOnly {
		verb = map[string]string{"wrote": "would write", "removed": "would remove"}[verb]
	}
	fmt.Fprintf(out, "%s %s\n", verb, c.path)
	if f.diff {
		c.printDiff()
	}
	if !f.checkOnly && !f.restart {
		fmt.Fprintf(out, "To apply this, run 'systemctl daemon-reload' and 'systemctl try-restart %s'.\n", instances(c.unit.Name))
	}
}

// state describes a drop-in that does not change.
func (c *unitChange) state() string {
	if c.new == "" {
		return "there is no " + c.path
	}
	return c.path + " is up to date"
}

// printDiff prints the lines that only one of the texts has.
func (c *unitChange) printDiff() {
	before, after := strings.SplitAfter(c.now, "\n"), strings.SplitAfter(c.new, "\n")
	print := func(sign string, lines, others []string) {
		for _, line := range lines {
			if line != "" && !slices.Contains(others, line) {
				fmt.Fprintf(c.env.Out, "%s%s\n", sign, cli.Printable(strings.TrimSuffix(line, "\n")))
			}
		}
	}
	print("-", before, after)
	print("+", after, before)
}

// restart has systemd use the files as they are now.
func (c *unitChange) restart(ctx context.Context) error {
	name := instances(c.unit.Name)
	for _, args := range [][]string{{"daemon-reload"}, {"try-restart", name}} {
		if args[0] == "try-restart" && !c.runs(ctx, name) {
			fmt.Fprintf(c.env.Out, "%s does not run, so it was not restarted.\n", name)
			return nil
		}
		if out, err := c.sys.output(ctx, "systemctl", args...); err != nil {
			return fmt.Errorf("the files are in place, but 'systemctl %s' failed: %s", strings.Join(args, " "), cmp.Or(strings.TrimSpace(out), err.Error()))
		}
	}
	return nil
}

// runs reports whether a service, or an instance of a template, runs, or is about to. systemctl fails for the latter, too.
func (c *unitChange) runs(ctx context.Context, name string) bool {
	out, err := c.sys.output(ctx, "systemctl", "is-active", name)
	return err == nil || slices.ContainsFunc(strings.Fields(out), func(state string) bool {
		return state == "activating" || state == "reloading" || state == "deactivating"
	})
}

// instances returns the pattern of systemctl for the running instances of a template, or the name of another service.
func instances(name string) string { return strings.Replace(name, "@.", "@*.", 1) }
