// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smcmonitor is the sub-command monitor of smckit, which prints what happens to link groups, links, devices, ports and
// connections.
package smcmonitor

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// toolName is how the command begins its messages.
const toolName = "smckit monitor"

// Tool is the command, which smckit has as its own.
var Tool = cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command {
	cmd := newCommand(env, systemDeps())
	cli.AddNetNSFlag(cmd, env)
	return cmd
}}

// deps has the functions by which the command uses the system. Tests replace it.
type deps struct {
	open   func(ctx context.Context) (kernel, error)
	ifName func(index uint32) string
	now    func() time.Time
	trace  func() (*traceSource, error)
	// hints returns a channel that receives a value when interfaces or RDMA devices change, until the context ends.
	hints func(ctx context.Context) <-chan struct{}
	// tick returns a channel that receives the time every d, and a function that stops this.
	tick func(d time.Duration) (<-chan time.Time, func())
	// after returns a channel that receives the time once, after d.
	after func(d time.Duration) <-chan time.Time
	// cookie returns that of the network namespace.
	cookie func() (uint64, error)
}

// traceSource is a started tracer. lines calls its argument with each line until the context ends; close removes the trace instance.
type traceSource struct {
	events []string
	lines  func(ctx context.Context, line func(string)) error
	hangup <-chan os.Signal // SIGHUP
	close  func() error
}

func systemDeps() deps {
	return deps{
		open:   func(ctx context.Context) (kernel, error) { return netlinksmc.NewContext(ctx) },
		ifName: cli.InterfaceName,
		now:    time.Now,
		trace:  startTrace,
		hints:  hints,
		tick: func(d time.Duration) (<-chan time.Time, func()) {
			t := time.NewTicker(d)
			return t.C, t.Stop
		},
		after:  time.After,
		cookie: cookie,
	}
}

func newCommand(env *cli.Env, d deps) *cobra.Command {
	m := &monitor{env: env, deps: d, printer: printer{env: env, now: d.now}}
	interval := time.Second
	cmd := &cobra.Command{
		Use:                   "monitor [-t] [--json] [--interval SECONDS] [OBJECT]...",
		Short:                 "Print link groups, links, devices and ports that come and go, and fallbacks",
		Long:                  long,
		Example:               example,
		DisableFlagsInUseLine: true,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
			return objects, cobra.ShellCompDirectiveNoFileComp
		},
		Args: func(_ *cobra.Command, args []string) error {
			var err error
			m.printer.objects, err = selected(args)
			return err
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return m.run(cmd.Context(), interval)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&m.printer.time, "timestamp", "t", false, "begin each line with the time")
	cli.AddJSONFlag(f, env, &m.printer.json, "print each event as a line of JSON")
	cli.AddSecondsFlag(f, &interval, "interval", "list the objects every `SECONDS`")
	// This fails only for an option that does not exist.
	_ = cmd.RegisterFlagCompletionFunc("interval", cobra.NoFileCompletions)
	return cmd
}

// selected returns the set of the objects that the operands name, all if there is none.
func selected(args []string) (map[string]bool, error) {
	set := map[string]bool{}
	for _, a := range args {
		if a != "all" && !slices.Contains(objects, a) {
			return nil, fmt.Errorf("%q is not an object: choose all, %s", a, strings.Join(objects, ", "))
		}
		set[a] = true
	}
	if len(args) == 0 || set["all"] {
		for _, o := range objects {
			set[o] = true
		}
	}
	return set, nil
}

const long = `Print what happens in the network namespace until interrupted: one line for
each event. Without OBJECT, all events are printed.

OBJECTS
  linkgroup  add, delete; change: the arrangement of the links of SMC-R
  link       of SMC-R: add, delete, up, down; fail, with the cause; not-added: a
             link that this host has given up
  device     RDMA and ISM devices that SMC can use: add, delete
  port       of an RDMA device: add, delete, up, down
  fallback   tcp: a connection uses TCP, with the reason; the peer's reason and
             the role, with smckit's module
  all        all of these

SOURCES
  The command lists the objects every second (--interval), and at once when an
  interface or, from Linux 6.13 on, an RDMA device changes. An object that comes
  and goes between two listings is not seen. Fallbacks and failures of links
  come from tracepoints of the module, at once, through a trace instance of the
  command's own, which other users of the tracer do not notice. It is removed at
  the end; one that a killed command has left is removed by the next.

  Only root may use the tracer. Other users, and modules without tracepoints
  (before Linux 5.16), get no "fail" and "not-added", and fallbacks come from
  counters at each listing: the number of connections for each reason. A note on
  standard error says so.

CAUSES
  With smckit's module, "fail" has the cause and a detail, a number that depends
  on the cause; with a stock module, it has the device only. The detail of
  "not-added" is an errno, and its cause the step: STEP_1 the server asks,
  STEP_2 keys are exchanged, STEP_3 the client makes its end of the link.

JSON
  Each line is a document: schema, time, object, action, and what the event has
  of transport, linkgroup_id, link_id, link_uid, role, linkgroup_type, pnet_id,
  device, port, netdev, gid, peer_gid, cause, detail, reason {code, name, text},
  peer_reason and connections. "time" is when the command noticed the event.

EXIT STATUS
  1    there is no SMC module, or it has been unloaded
  2    the command line is wrong
  130  interrupted by SIGINT, 143 by SIGTERM; 1 by SIGHUP`

const example = `  smckit monitor -t
  smckit monitor link port                        # what the network does
  smckit monitor --json fallback | jq -r .reason.name`
