// SPDX-License-Identifier: Apache-2.0

// Package smcrstats is the command tree of smcr-stats.
package smcrstats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
)

const name = "smcr-stats"

// Tool is the command smcr-stats.
var Tool = cli.Tool{
	Name: name,
	New:  func(env *cli.Env) *cobra.Command { return newRoot(env, systemDeps(env)) },
	Long: []string{"details", "reset", "smcd", "smcr", "json", "watch"},
}

const long = `smcr-stats shows how much data this network namespace moves over SMC, in the
style of AIX's entstat. For SMC-R and for SMC-D it prints the bytes sent and
received, the numbers of requests and connections, and how often a buffer was
full or too small. Failed handshakes and fallbacks to TCP, which the kernel
counts for both together, come last.

-d adds buffers and requests by size, special socket calls, the reasons for
fallback in words with their remedies, the link groups and links, and with
smckit's own module the counters of links and failover.

Figures count from the loading of the module or from the last reset; the heading
says which, and when that was. -r shows them and then resets. The kernel cannot
reset counters, so the command stores a baseline, private to the user and the
network namespace. 'smcr stats', 'smcd stats' and 'smckit' count from the same
baseline, and a reset by one of them is a reset for all, of SMC-R and SMC-D
together. A reload of the module discards the baseline, with a message on stderr.

--watch adds rates, from the second round on.

JSON fields:
  schema; hostname; smc_version; smc_release;
  %[1]s;
  smcr and smcd, each left out if not requested:
  {%[2]s;
  rates, only with --watch: {rx_bytes, tx_bytes, rx_requests, tx_requests} per
  second; linkgroups, only with -d: [{linkgroup_id, role, linkgroup_type,
  pnet_id, connections, sndbuf_bytes, rmb_bytes or dmb_bytes, links [{link_id,
  state, netdev, device, port, connections}]}]}.

Exit status:
  0  done
  1  failed
  2  the command line is wrong

Files:
  $XDG_STATE_HOME/smckit, ~/.local/state/smckit
            baselines of users; the second if the variable is not set
  /run/smckit
            baselines of root`

const example = `  # the figures of SMC-R and SMC-D
  smcr-stats

  # why do connections fall back to TCP?
  smcr-stats -d

  # SMC-R only, every two seconds, counted from now
  smcr-stats -R -r >/dev/null && smcr-stats -R --watch 2`

// client has the command's requests to the kernel; *netlinksmc.Client implements it.
type client interface {
	io.Closer
	smcstats.Source
	SystemInfo(context.Context) (*netlinksmc.SystemInfo, error)
	LinkGroupsRWithLinks(context.Context) ([]netlinksmc.LinkGroupR, error)
	LinkGroupsD(context.Context) ([]netlinksmc.LinkGroupD, error)
}

// baselines keeps the values at the last reset; *smcstats.Store implements it.
type baselines interface {
	Reduce(cur *smcstats.Snapshot) smcstats.Reading
	Reset(ctx context.Context, cur *smcstats.Snapshot) error
}

// deps has the functions that the command uses to access the system. Tests replace it.
type deps struct {
	open      func(context.Context) (client, error)
	ifname    func(index uint32) string
	baselines func() (baselines, error)
	now       func() time.Time
	watch     cli.Watch
}

func systemDeps(env *cli.Env) deps {
	return deps{
		open: func(ctx context.Context) (client, error) { return netlinksmc.NewContext(ctx) },
		ifname: func(index uint32) string {
			if i, err := net.InterfaceByIndex(int(index)); err == nil {
				return i.Name
			}
			return ""
		},
		baselines: func() (baselines, error) { return statdoc.OpenBaseline(env.Getenv) },
		now:       time.Now,
	}
}

// options are the command's options.
type options struct {
	env *cli.Env
	deps
	details, reset, absolute, json bool
	onlyD, onlyR                   bool

	// last is the reading of the previous round, at lastTime, for computing rates.
	last     *smcstats.Snapshot
	lastTime time.Time
}

func newRoot(env *cli.Env, d deps) *cobra.Command {
	o := &options{env: env, deps: d}
	cmd := &cobra.Command{
		Use:               name + " [OPTIONS]",
		Short:             "Show the statistics of SMC-R and SMC-D",
		Long:              fmt.Sprintf(long, statdoc.HostFields, statdoc.Fields),
		Example:           example,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.details, "details", "d", false, "show everything: sizes, fallback reasons, link groups and links")
	flags.BoolVarP(&o.reset, "reset", "r", false, "show the figures, then count from zero")
	flags.BoolVarP(&o.absolute, "absolute", "a", false, "count from module load, not from the last reset")
	flags.BoolVarP(&o.onlyD, "smcd", "D", false, "only SMC-D")
	flags.BoolVarP(&o.onlyR, "smcr", "R", false, "only SMC-R")
	cli.AddJSONFlag(flags, env, &o.json, "print one JSON document")
	o.watch.AddFlag(flags)
	cli.AddNetNSFlag(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case o.onlyD && o.onlyR:
			return cli.Usagef("-D and -R exclude each other: without both you see SMC-D and SMC-R")
		case o.reset && o.watch.On():
			return cli.Usagef("-r and --watch exclude each other: reset first, then watch")
		}
		return o.run(cmd.Context())
	}
	return cmd
}

func (o *options) run(ctx context.Context) error {
	c, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	separator := "\n"
	if o.json {
		separator = ""
	}
	return o.watch.Run(ctx, o.env, separator, func() error { return o.round(ctx, c) })
}

// round shows the statistics once.
func (o *options) round(ctx context.Context, c client) error {
	info, err := c.SystemInfo(ctx)
	if err != nil {
		return err
	}
	cur, err := smcstats.Collect(ctx, c)
	warn, err := interrupted(err)
	if err != nil {
		return err
	}
	now := o.now()
	v := view{now: now, info: info, reading: smcstats.Reading{Snapshot: cur}}
	var store baselines
	if !o.absolute || o.reset {
		if store, err = o.baselines(); err != nil {
			return err
		}
	}
	if !o.absolute {
		if v.reading = store.Reduce(cur); v.reading.Note != nil {
			o.env.Note("%v", v.reading.Note)
		}
	}
	if o.details {
		lwarn, err := o.linkGroups(ctx, c, &v)
		if err != nil {
			return err
		}
		warn = cmp.Or(warn, lwarn)
	}
	o.rate(&v, cur, now)
	if err := o.write(v); err != nil {
		return err
	}
	if o.reset {
		if err := store.Reset(ctx, cur); err != nil {
			return err
		}
	}
	return warn
}

// interrupted separates warnings from failures. A list that changed while it was read is shown with a warning.
func interrupted(err error) (warn, fail error) {
	if errors.Is(err, netlinksmc.ErrDumpInterrupted) {
		return err, nil
	}
	return nil, err
}

func (o *options) linkGroups(ctx context.Context, c client, v *view) (warn, err error) {
	var warnD error
	if !o.onlyD {
		v.groupsR, err = c.LinkGroupsRWithLinks(ctx)
		if warn, err = interrupted(err); err != nil {
			return nil, err
		}
	}
	if !o.onlyR {
		v.groupsD, err = c.LinkGroupsD(ctx)
		if warnD, err = interrupted(err); err != nil {
			return nil, err
		}
	}
	return cmp.Or(warn, warnD), nil
}

// rate adds the change since the previous round.
func (o *options) rate(v *view, cur *smcstats.Snapshot, now time.Time) {
	if !o.watch.On() {
		return
	}
	if seconds := now.Sub(o.lastTime).Seconds(); o.last != nil && seconds > 0 {
		// Sub fails if counters have fallen, because the module was reloaded between the readings. Show no rate in this round.
		if delta, err := smcstats.Sub(cur, o.last); err == nil {
			v.delta, v.seconds = delta, seconds
		}
	}
	o.last, o.lastTime = cur, now
}
