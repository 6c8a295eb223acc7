// SPDX-License-Identifier: Apache-2.0

// Package smcpnet is the command smc_pnet, which shows and changes the PNET table. It has the sub-commands of the designers of
// AF_SMC (add, del), sub-commands for whole tables (apply, export), and the options of smc-tools.
package smcpnet

import (
	"context"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

const toolName = "smc_pnet"

// Tool is the command.
var Tool = cli.Tool{
	Name:    toolName,
	New:     func(env *cli.Env) *cobra.Command { return newRoot(env, realSystem()) },
	Rewrite: rewrite,
	Long:    incumbentLong,
}

// table is the kernel's PNET table; *pnet.Client implements it.
type table interface {
	pnet.Kernel
	Flush(ctx context.Context) error
	Close() error
}

// system has the parts of the machine that the command uses. Tests replace it.
type system struct {
	// dial opens the kernel's table.
	dial func(context.Context) (table, error)
	// devices looks up devices.
	devices pnetdev.Devices
	// hardware reads the PNET IDs that firmware has set.
	hardware pnetdev.Hardware
}

func realSystem() system {
	return system{
		dial: func(ctx context.Context) (table, error) {
			c, err := pnet.NewContext(ctx)
			if err != nil {
				return nil, err
			}
			return c, nil
		},
		devices:  pnetdev.Sysfs{},
		hardware: pnet.Sysfs{},
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
	old := &incumbent{command: c}
	root := &cobra.Command{
		Use:               toolName + " [OPTION]... [PNETID]",
		Short:             "Show and change the PNET table of AF_SMC",
		Long:              rootLong,
		Example:           rootExample,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: old.completeOperand,
		RunE:              func(cmd *cobra.Command, args []string) error { return old.run(cmd.Context(), args) },

		DisableFlagsInUseLine: true,
	}
	old.addFlags(root)
	env.AddYesFlag(root.Flags())
	cli.AddJSONFlag(root.PersistentFlags(), env, &c.json, "print one JSON document")
	cli.AddNetNSFlag(root, env)
	root.AddCommand(newAdd(c), newDel(c), newShow(c), newFlush(c), newApply(c), newExport(c))
	return root
}

// withTable calls f with the kernel's table.
func (c *command) withTable(ctx context.Context, f func(table) error) error {
	t, err := c.sys.dial(ctx)
	if err != nil {
		return err
	}
	defer t.Close()
	return f(t)
}
