// SPDX-License-Identifier: Apache-2.0

// Package smcss is the command smcss, which lists AF_SMC sockets.
package smcss

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

const toolName = "smcss"

// Tool is the command smcss.
var Tool = cli.Tool{
	Name: toolName,
	New:  func(env *cli.Env) *cobra.Command { return newCommand(env, systemDeps()) },
	Long: []string{"all", "debug", "help", "listening", "smcd", "smcr", "version", "wide"},
}

// source streams the AF_SMC sockets of the process's network namespace; *netlinksmc.Diag implements it.
type source interface {
	Sockets(ctx context.Context, ext netlinksmc.DiagExt) iter.Seq2[netlinksmc.Socket, error]
	io.Closer
}

// deps has the functions that the command uses to access the system. Tests replace it.
type deps struct {
	open func() (source, error)
	// proc is the mount point of procfs.
	proc string
	// ifName returns the name of an interface, or "".
	ifName func(index uint32) string
	// lookupUser finds the ID of a user by name.
	lookupUser func(name string) (uint32, error)
	// tcp returns the facts of all TCP connections.
	tcp func() (map[ends]jsonTCP, error)
	now func() time.Time
	// tick returns a channel that receives the time every d, and a function that stops this.
	tick func(d time.Duration) (<-chan time.Time, func())
}

func systemDeps() deps {
	return deps{
		open:       func() (source, error) { return netlinksmc.NewDiag() },
		proc:       "/proc",
		ifName:     cli.InterfaceName,
		lookupUser: lookupUser,
		tcp:        readTCP,
		now:        time.Now,
		tick: func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(d)
			return t.C, t.Stop
		},
	}
}

func lookupUser(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if err != nil {
		return 0, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	return uint32(uid), err
}

// options are the values of the command line.
type options struct {
	env  *cli.Env
	deps deps

	all, listening bool
	cols           columns
	summary, json  bool
	watch          time.Duration
	filter         filter
	info           bool
	order          order
	// facts is the reader of the last round.
	facts *infoReader
}

func newCommand(env *cli.Env, d deps) *cobra.Command {
	o := &options{env: env, deps: d}
	cmd := &cobra.Command{
		Use:                   "smcss [OPTION]...",
		Short:                 "List AF_SMC sockets",
		Long:                  longHelp(),
		Example:               examples,
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     cobra.NoFileCompletions,
		// Check this here and not in RunE, which runs only after the command has entered the network namespace.
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected operand %q: %s has options only", args[0], env.Name())
			}
			return o.check()
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd)
	cli.AddNetNSFlag(cmd, env)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&o.all, "all", "a", false, "list every socket, also those in state INIT and LISTEN")
	f.BoolVarP(&o.listening, "listening", "l", false, "list listening sockets only")
	f.BoolVarP(&o.cols.debug, "debug", "d", false, "add buffers, cursors and flags of each connection")
	f.BoolVarP(&o.cols.smcd, "smcd", "D", false, "list SMC-D sockets only, with their devices and buffers")
	f.BoolVarP(&o.cols.smcr, "smcr", "R", false, "list SMC-R sockets only, with their links")
	f.BoolVarP(&o.cols.wide, "wide", "W", false, "do not cut long addresses")
	f.BoolVar(&o.cols.explain, "explain", false, "explain why a socket uses TCP, and what to do")
	f.BoolVarP(&o.cols.processes, "processes", "p", false, "add the processes that have the socket open")
	f.BoolVarP(&o.info, "info", "i", false, "add bytes, age, rates, fill of buffers and TCP's facts, in a line of its own")
	f.Var(&o.order, "sort", "sort by `KEY`: "+strings.Join(sortNames(), ", "))
	f.BoolVarP(&o.summary, "summary", "s", false, "print counts by state, mode and fallback reason instead of sockets")
	f.Var(newList(&o.filter.states, "list", parseState), "state", "list sockets in `STATE` only, INIT and LISTEN included")
	f.Var(newList(&o.filter.modes, "list", parseMode), "mode", "list connections in `MODE` only: smcr, smcd or tcp")
	f.Var(newList(&o.filter.ports, "list", parsePort), "port", "list sockets with the local or peer port `PORT` only")
	f.Var(newList(&o.filter.local, "list", parseEndpoint), "local", "list sockets with the local `ADDRESS[/LENGTH][:PORT]` only")
	f.Var(newList(&o.filter.peer, "list", parseEndpoint), "peer", "list sockets with the peer `ADDRESS[/LENGTH][:PORT]` only")
	f.Var(newList(&o.filter.uids, "list", uidParser(o.deps.lookupUser)), "uid", "list sockets of `USER` only, an ID or a name")
	cli.AddSecondsFlag(f, &o.watch, "watch", "list again every `SECONDS`, until interrupted")
	cli.AddJSONFlag(f, o.env, &o.json, "print one JSON document")

	// Registering fails only for an option that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(lowerNames(states), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(lowerNames(modes), cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("sort", cobra.FixedCompletions(sortNames(), cobra.ShellCompDirectiveNoFileComp))
	for _, name := range []string{"port", "local", "peer", "uid", "watch"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// check refuses options that exclude each other, in the order of smc-tools.
func (o *options) check() error {
	c, f := &o.cols, &o.filter
	for _, x := range []struct {
		both bool
		a, b string
	}{
		{c.smcd && c.smcr, "smcd", "smcr"},
		{o.listening && c.debug, "listening", "debug"},
		{o.listening && o.all, "listening", "all"},
		{o.listening && c.smcr, "listening", "smcr"},
		{o.listening && c.smcd, "listening", "smcd"},
		{o.listening && len(f.states) > 0, "listening", "state"},
		{o.listening && o.info, "listening", "info"},
		{o.summary && c.debug, "summary", "debug"},
		{o.summary && o.info, "summary", "info"},
		{o.summary && o.order.key != nil, "summary", "sort"},
		{o.summary && c.processes, "summary", "processes"},
	} {
		if x.both {
			return fmt.Errorf("--%s together with --%s is not supported", x.a, x.b)
		}
	}
	return nil
}
