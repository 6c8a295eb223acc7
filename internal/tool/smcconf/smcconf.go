// SPDX-License-Identifier: Apache-2.0

// Package smcconf is the command smc_conf. It applies the files in /etc/smc to the kernel, and saves the kernel's state to
// these files.
package smcconf

import (
	"context"
	"errors"
	"io"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

const toolName = "smc_conf"

// Tool is the command.
var Tool = cli.Tool{
	Name: toolName,
	New:  func(env *cli.Env) *cobra.Command { return newRoot(env, realSystem()) },
}

// table is the kernel's PNET table; *pnet.Client implements it.
type table interface {
	pnet.Kernel
	io.Closer
}

// client has the other requests to the kernel; *netlinksmc.Client implements it.
type client interface {
	io.Closer
	UEIDs(context.Context) ([]string, error)
	AddUEID(ctx context.Context, eid string) error
	RemoveUEID(ctx context.Context, eid string) error
	SEID(context.Context) (*netlinksmc.SEID, error)
	SetSEID(ctx context.Context, enabled bool) error
	HandshakeLimitation(context.Context) (bool, error)
	SetHandshakeLimitation(ctx context.Context, enabled bool) error
}

// rules is the policy in the kernel; *policy.Client implements it.
type rules interface {
	io.Closer
	Get(ctx context.Context) (policy.Policy, error)
	SetRules(ctx context.Context, generation uint32, rules []policy.Rule) error
}

// system has the parts of the machine that the command uses. Tests replace it.
type system struct {
	dialTable  func(context.Context) (table, error)
	dialClient func(context.Context) (client, error)
	dialRules  func(context.Context) (rules, error)
	devices    pnetdev.Devices
	hardware   pnetdev.Hardware
	// sysctls is the directory of net.smc.*.
	sysctls string
	// lock is the path of the lock file, which keeps two of these commands from running at the same time.
	lock string
}

func realSystem() system {
	return system{
		dialTable: func(ctx context.Context) (table, error) {
			c, err := pnet.NewContext(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		dialClient: func(ctx context.Context) (client, error) {
			c, err := netlinksmc.NewContext(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		dialRules: func(ctx context.Context) (rules, error) {
			c, err := policy.NewContext(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		devices:  pnetdev.Sysfs{},
		hardware: pnet.Sysfs{},
		sysctls:  "/proc/sys/net/smc",
		lock:     "/run/smc_conf.lock",
	}
}

// command has the state that all commands of the tree share.
type command struct {
	env *cli.Env
	sys system
	// json is the option --json.
	json bool
}

func newRoot(env *cli.Env, sys system) *cobra.Command {
	c := &command{env: env, sys: sys}
	root := &cobra.Command{
		Use:     toolName,
		Short:   "Keep the configuration of AF_SMC in files",
		Long:    rootLong,
		Example: rootExample,
		Args:    cobra.NoArgs,
		RunE:    cli.Usage,
	}
	cli.AddJSONFlag(root.PersistentFlags(), env, &c.json, "print one JSON document")
	cli.AddNetNSFlag(root, env)
	root.AddCommand(newApply(c), newCheck(c), newSave(c))
	return root
}

// dirCommand returns cmd with the directory for its operand.
func dirCommand(cmd *cobra.Command, run func(ctx context.Context, dir string) error) *cobra.Command {
	cmd.Use += " [DIR]"
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := conf.Dir
		if len(args) > 0 {
			dir = args[0]
		}
		if dir == "" {
			// An empty name is a script's unset variable and must not mean the root directory.
			return cli.Usagef("the name of the directory is empty")
		}
		return run(cmd.Context(), dir)
	}
	return cmd
}

// printWarnings prints the items that were left out, which is no failure. With --json they are in the document.
func (c *command) printWarnings(warnings []string) {
	for _, w := range warnings {
		c.env.Note("warning: %s", w)
	}
}

// ueids reads the user EIDs.
func ueids(ctx context.Context, k client) ([]string, error) {
	eids, err := k.UEIDs(ctx)
	if errors.Is(err, netlinksmc.ErrDumpInterrupted) {
		return nil, remedy.Errorf("try again", "%w", err)
	}
	return eids, err
}
