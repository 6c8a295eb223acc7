// SPDX-License-Identifier: Apache-2.0

// Package smcrun is the command smc_run, which runs a program with AF_SMC sockets instead of TCP sockets.
package smcrun

import (
	"cmp"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/convert"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const toolName = "smc_run"

// Tool is the command smc_run.
var Tool = cli.Tool{
	Name:    toolName,
	New:     func(env *cli.Env) *cobra.Command { return newCommand(env, newSystem()) },
	Rewrite: rewrite,
	// The options that existed before --unit keep their abbreviations.
	Long: []string{"help", "version", "method", "rcvbuf", "sndbuf", "port", "to", "not", "debug", "quiet", "require", "netns"},
}

// Names of the environment variables that pass the options to the preload library. Package convert has those of rules.
const (
	envPreload = "LD_PRELOAD"
	envDebug   = "SMC_DEBUG"
	envQuiet   = "SMC_QUIET"
	envRequire = "SMC_REQUIRE"
	envSend    = "SMC_SNDBUF"
	envReceive = "SMC_RCVBUF"
)

// flags are the options as the user typed them.
type flags struct {
	method, receive, send string
	ports, networks, not  []string
	debug, quiet, require bool
	supervise             bool
	argv0, called         string
	unit                  unitFlags
}

// options is a checked command line.
type options struct {
	method        string
	receive, send int
	rules         convert.Rules
	debug         bool
	quiet         bool
	require       bool
	command       []string
	// argv0 is what the program gets as its own name, if that is not its path.
	argv0 string
	// called is the name of this command in messages.
	called string
}

// argv returns the arguments of the command, its name included.
func (o *options) argv() []string {
	if o.argv0 == "" {
		return o.command
	}
	return append([]string{o.argv0}, o.command[1:]...)
}

const methodAuto = "auto"

func (f *flags) define(fs *pflag.FlagSet) {
	fs.SetInterspersed(false)
	fs.SortFlags = false
	fs.StringVar(&f.method, "method", methodAuto, "give the program AF_SMC sockets by `METHOD`: auto, preload or seccomp")
	fs.StringVarP(&f.receive, "rcvbuf", "r", "", "receive buffers of `SIZE` bytes, or SIZE ending in k or m")
	fs.StringVarP(&f.send, "sndbuf", "t", "", "send buffers of `SIZE` bytes")
	fs.StringArrayVar(&f.ports, "port", nil, "SMC for the ports in `LIST` only, such as 6379,8000-8100")
	fs.StringArrayVar(&f.networks, "to", nil, "SMC for the networks in `LIST` only, such as 10.0.0.0/8,fd00::1")
	fs.StringArrayVar(&f.not, "not", nil, "no SMC for the ports and networks in `LIST`")
	fs.BoolVarP(&f.debug, "debug", "d", false, "print on standard error a line for each socket: AF_SMC or TCP")
	fs.BoolVarP(&f.quiet, "quiet", "q", false, "no warning if sockets stay TCP")
	fs.BoolVar(&f.require, "require", false, "fail if AF_SMC is not available, instead of using TCP")
	fs.StringVar(&f.argv0, "argv0", "", "give COMMAND `NAME` as its argument 0, as exec -a does")
	f.unit.define(fs)
	fs.BoolVar(&f.supervise, "supervise", false, "")
	fs.StringVar(&f.called, "called", "", "")
	_ = fs.MarkHidden("supervise")
	_ = fs.MarkHidden("called")
}

func newCommand(env *cli.Env, sys *system) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use: toolName + " [-d] [-q] [-r SIZE] [-t SIZE] [--method METHOD] [--port LIST] [--to LIST] [--not LIST] [--require] COMMAND [ARG...]\n  " +
			toolName + " [OPTION...] --unit NAME [--check] [--diff] [--undo] [--restart]",
		Short:   "Run a program with AF_SMC sockets in place of TCP sockets",
		Long:    long,
		Example: example,
		Args:    func(cmd *cobra.Command, args []string) error { return f.unit.check(cmd.Flags(), args) },

		DisableFlagsInUseLine: true,
	}
	f.define(cmd.Flags())
	cli.AddNetNSFlag(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := f.parse(env, args)
		if err != nil {
			return err
		}
		if f.supervise {
			return sys.supervise(o)
		}
		if f.unit.name != "" {
			return f.unit.run(cmd.Context(), env, sys, o)
		}
		return run(env, sys, o)
	}
	complete(cmd, env, sys)
	return cmd
}

// parse checks the options. Their defaults are the environment variables of the preload library, so that an smc_run started by
// another inherits its options.
func (f *flags) parse(env *cli.Env, args []string) (*options, error) {
	o := &options{method: f.method, debug: f.debug, quiet: f.quiet, require: f.require, command: args, argv0: f.argv0, called: cmp.Or(f.called, env.Name())}
	switch o.method {
	case methodAuto, string(convert.Preload), string(convert.Seccomp):
	default:
		return nil, cli.Usagef("--method %q: choose auto, preload or seccomp", o.method)
	}
	var err error
	if o.receive, err = parseSize("-r", cmp.Or(f.receive, env.Getenv(envReceive))); err != nil {
		return nil, err
	}
	if o.send, err = parseSize("-t", cmp.Or(f.send, env.Getenv(envSend))); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		option, variable string
		given            []string
		add              func(string) error
	}{
		{"--port", convert.EnvPort, f.ports, o.rules.Only.AddPorts},
		{"--to", convert.EnvTo, f.networks, o.rules.Only.AddNetworks},
		{"--not", convert.EnvNot, f.not, o.rules.Not.AddEither},
	} {
		if inherited := env.Getenv(list.variable); len(list.given) == 0 && inherited != "" {
			list.option, list.given = list.variable, []string{inherited}
		}
		for _, text := range list.given {
			if err := list.add(text); err != nil {
				return nil, cli.Usagef("%s: %w", list.option, err)
			}
		}
	}
	if len(args) == 0 && !f.supervise && f.unit.name == "" {
		return nil, cli.Usagef("no command given")
	}
	return o, nil
}
