// SPDX-License-Identifier: Apache-2.0

// Package cli has the code that all commands share: how they start and end, where they print, how errors become one line and an
// exit status, and how tables and JSON look.
package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/smckit/smckit/internal/version"
	"github.com/spf13/cobra"
)

// Tool is one command of the suite.
type Tool struct {
	// Name is the name under which the command is installed and reports its errors.
	Name string
	// New builds the command tree for one run.
	New func(*Env) *cobra.Command
	// Rewrite, if not nil, turns spellings that pflag does not know (iproute2's single-dash words, abbreviated
	// objects) into the ones the tree declares. It runs before parsing and sees the arguments without the program name.
	Rewrite func(args []string) ([]string, error)
	// Long lists long options (without dashes) that win when an abbreviation of them is ambiguous: the options of the
	// tool that ours replaces.
	Long []string
	// Subs are tools that are commands of this one, too.
	Subs []Sub
}

// Main runs t in this process and returns its exit status. A command that a signal has interrupted kills itself with that
// signal: then a shell reports 128 plus its number, and systemd regards a stopped service as stopped, not as failed.
func Main(t Tool) int {
	// Handle a write to a closed pipe like any other error. The signal would end a command between two of its changes.
	signal.Ignore(syscall.SIGPIPE)
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	go func() {
		s := <-caught
		// A second signal ends the process at once, in case the command ignores the first.
		signal.Stop(caught)
		cancel(&Interrupted{s.(syscall.Signal)})
	}()
	status := Run(ctx, t, System(), os.Args[1:])
	if by := interruptedBy(ctx); by != 0 && status == signalStatus(by) {
		signal.Reset(by)
		_ = syscall.Kill(os.Getpid(), by)
		// Another thread may get the signal, a moment later. The init process of a container does not get it at all.
		if os.Getpid() != 1 {
			time.Sleep(time.Second)
		}
	}
	return status
}

// Interrupted is the cause of a context that a signal has cancelled.
type Interrupted struct{ Signal syscall.Signal }

func (i *Interrupted) Error() string { return i.Signal.String() }

// interruptedBy returns the signal that has cancelled ctx, or 0.
func interruptedBy(ctx context.Context) syscall.Signal {
	var i *Interrupted
	if errors.As(context.Cause(ctx), &i) {
		return i.Signal
	}
	return 0
}

// signalStatus returns the exit status that shells report for a command killed by a signal.
func signalStatus(s syscall.Signal) int { return 128 + int(s) }

// Run runs t with args (without the program name) in env and returns its exit status. A failing command prints one line on
// env.Err, prefixed with the tool's name as the user has called it.
func Run(ctx context.Context, t Tool, env *Env, args []string) int {
	out := env.Out
	env.buf = bufio.NewWriterSize(out, 64<<10)
	env.output, env.schema = &output{w: env.buf}, 0
	env.Out = env.output
	defer func() { env.Out, env.buf = out, nil }()

	path, err := execute(ctx, t, env, args)
	if err != nil && env.Explain != nil {
		err = env.Explain(err)
	}
	reportJSON(t, env, path, args, err)
	if ferr := env.Flush(); ferr != nil && (err == nil || errors.Is(err, ferr)) {
		err = fmt.Errorf("cannot write the output: %w", ferr)
	}
	return report(ctx, env, path, err)
}

// execute runs the command that args name. It also returns the name of that command with those of its parents.
func execute(ctx context.Context, t Tool, env *Env, args []string) (path string, err error) {
	cmd, err := read(t, env, args)
	if err == nil {
		cmd, err = cmd.ExecuteContextC(ctx)
	}
	return cmd.CommandPath(), err
}

// read builds the command tree and sets its command line, converted to the spelling of cobra. It returns the root, or, with an
// error, the command that the error is about.
func read(t Tool, env *Env, args []string) (*cobra.Command, error) {
	root := Tree(t, env)
	env.called, env.confirm.asks, env.hints = t.Name, false, t.hints()
	if s, _ := t.sub(root, args); s != nil {
		env.called, env.confirm.asks = t.Name+" "+s.Name, true
	}
	if !completing(args) {
		var cmd *cobra.Command
		var err error
		if cmd, args, err = toCobra(t, root, args); err != nil {
			return cmd, err
		}
		if cmd, err = findCommand(root, args); err != nil {
			return cmd, err
		}
	}
	// Do not pass nil for an empty command line: cobra would read os.Args.
	root.SetArgs(append([]string{}, args...))
	return root, nil
}

// Tree returns the command tree of t as it is when t runs in env, for manuals and completions.
func Tree(t Tool, env *Env) *cobra.Command {
	root := t.New(env)
	for _, s := range t.Subs {
		root.AddCommand(s.tree(t.Name, env))
	}
	prepare(root, t, env)
	return root
}

// completing reports whether a shell asks for completions. The arguments are incomplete then.
func completing(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// prepare sets the streams and the version of a tree, and keeps cobra from printing errors and usage itself.
func prepare(root *cobra.Command, t Tool, env *Env) {
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	root.SilenceErrors = true
	root.SilenceUsage = true
	root.Version = version.Version
	root.SetVersionTemplate(t.Name + " utility, smckit-{{.Version}}\n")
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	// findCommand adds suggestions, in one line.
	root.DisableSuggestions = true
	usageArgs(root)
}

// report prints err, if it needs printing, and returns the exit status for it. path is the command that has failed.
func report(ctx context.Context, env *Env, path string, err error) int {
	status := exitStatus(err)
	var silent *StatusError
	switch {
	case err == nil, errors.As(err, &silent):
	case errors.Is(err, syscall.EPIPE):
		// The reader has closed the pipe (| head), so do not print an error.
		return ExitFailure
	case errors.Is(err, context.Canceled):
		return signalStatus(cmp.Or(interruptedBy(ctx), syscall.SIGINT))
	case status == ExitUsage:
		env.Note("%v; see '%s --help'", err, path)
	default:
		env.Note("%v", err)
	}
	return status
}
