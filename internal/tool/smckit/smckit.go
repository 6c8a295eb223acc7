// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"context"
	"io"
	"iter"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
)

// Tool is the command smckit.
var Tool = cli.Tool{
	Name: name,
	New:  func(env *cli.Env) *cobra.Command { return newRoot(env, systemDeps(env)) },
	Subs: commands,
}

const long = `smckit without a command shows what this host does with SMC now: which AF_SMC
module it has, which transports and devices connections can use, how many sockets
use which transport, the most frequent reasons for TCP with their remedies, and
what to do next. The facts are those of this network namespace.

Each command is also a program of its own, under the name that its help and its
manual begin with: 'smckit sockets -a' is 'smcss -a'. groups shows what
'smcr linkgroup' and 'smcd linkgroup' show; links, eid and fabrics are
'smcr link', 'smcr ueid' and 'smc_ismd list'.

Like any program that uses SMC, smckit has the kernel load the AF_SMC module. It
needs no privilege; what this user may not see is listed as unknown. Figures about
connections count from the last 'smckit stats -r', 'smcr stats reset' or 'smcd
stats reset' of this user, or else from the loading of the module.

JSON fields:
  schema; able; kernel_release; module {available, loaded, smckit, module_version};
  configured_transports [string]; devices [{device, port, state, netdev, pnet_id,
  pnet_id_origin}]; socket_count; listening_count; transports [{transport,
  socket_count}]; fallback_counts {since, total, connections_smc, reasons [{code,
  name, text, remedy, connections}]}; findings [{condition, severity, text,
  remedy}]; unknown_facts [string]. What is unknown is left out.

Exit status:
  0  this host can use SMC
  1  it cannot, and the output says why; or the command failed
  2  the command line is wrong
  Commands have exit statuses of their own.`

const example = `  # what does this host do with SMC?
  smckit

  # run a server over SMC, and look at its connections
  smckit run redis-server &
  smckit sockets -a

  # why is a connection to hostb TCP?
  smckit check --connect hostb`

// source lists the AF_SMC sockets; *netlinksmc.Diag implements it.
type source interface {
	Sockets(ctx context.Context, ext netlinksmc.DiagExt) iter.Seq2[netlinksmc.Socket, error]
	io.Closer
}

// deps has the functions that the command uses to access the system. Tests replace it.
type deps struct {
	read    func(context.Context) (*check.Snapshot, error)
	sockets func() (source, error)
	// stats returns the counters since the last reset.
	stats func(context.Context) (smcstats.Reading, error)
}

func systemDeps(env *cli.Env) deps {
	return deps{
		read:    func(ctx context.Context) (*check.Snapshot, error) { return check.Reader{}.Read(ctx) },
		sockets: func() (source, error) { return netlinksmc.NewDiag() },
		stats:   func(ctx context.Context) (smcstats.Reading, error) { return readStats(ctx, env) },
	}
}

// readStats reads the counters. If there is no baseline, it counts from the loading of the module.
func readStats(ctx context.Context, env *cli.Env) (smcstats.Reading, error) {
	c, err := netlinksmc.NewContext(ctx)
	if err != nil {
		return smcstats.Reading{}, err
	}
	defer c.Close()
	cur, err := smcstats.Collect(ctx, c)
	if cur == nil {
		return smcstats.Reading{}, err
	}
	store, err := statdoc.OpenBaseline(env.Getenv)
	if err != nil {
		// Users without a home directory have no baseline.
		return smcstats.Reading{Snapshot: cur}, nil
	}
	return store.Reduce(cur), nil
}

func newRoot(env *cli.Env, d deps) *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Show what this host does with SMC, and control it",
		Long:    long,
		Example: example,
	}
	cli.AddJSONFlag(cmd.Flags(), env, &json, "print a JSON document")
	cli.AddOwnNetNSFlag(cmd, env)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := d.status(cmd.Context())
		if err != nil {
			return err
		}
		if json {
			err = env.WriteJSON(s.document(env))
		} else {
			err = s.write(env)
		}
		if err == nil && !s.able() {
			return &cli.StatusError{Status: cli.ExitFailure}
		}
		return err
	}
	return cmd
}
