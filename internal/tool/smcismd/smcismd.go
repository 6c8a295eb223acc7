// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smcismd is the command smc_ismd, which serves memory to guests of this host, so that they have SMC-D among themselves.
package smcismd

import (
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/fdstore"
	"github.com/spf13/cobra"
)

const (
	toolName = "smc_ismd"
	// defaultDir has the sockets.
	defaultDir = "/run/smc/ism"
	// defaultConfig has the fabrics of the service.
	defaultConfig = "/etc/smc/ism.conf"
)

// Tool is the command.
var Tool = cli.Tool{
	Name: toolName,
	New:  func(env *cli.Env) *cobra.Command { return newRoot(env, system{openStore: fdstore.Open}) },
}

// ToolFabrics is 'smc_ismd list', as a command of another tool.
var ToolFabrics = cli.Tool{
	Name: toolName + " list",
	New:  func(env *cli.Env) *cobra.Command { return newList(&command{env: env}) },
}

// system has the parts of the machine that the command uses. Tests replace it.
type system struct {
	// openStore returns the service manager's store of files.
	openStore func() (*fdstore.Store, error)
	// started, if not nil, is called when all fabrics are served.
	started func()
}

// command has the state that all commands of the tree share.
type command struct {
	env *cli.Env
	sys system
	// dir is the option --dir.
	dir string
}

func newRoot(env *cli.Env, sys system) *cobra.Command {
	c := &command{env: env, sys: sys}
	var o options
	root := &cobra.Command{
		Use:               toolName,
		Short:             "Share memory between guests of this host for SMC-D",
		Long:              rootLong,
		Example:           rootExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context(), o) },
	}
	flags := root.Flags()
	c.addDir(root)
	flags.StringArrayVarP(&o.fabrics, "fabric", "f", nil, "serve a fabric, `NAME:SIZE[,OPTION]...`; may be repeated")
	flags.StringVar(&o.config, "config", "", "serve the fabrics in `FILE`, too")
	flags.StringVar(&o.statusMode, "status-mode", "0600", "the `MODE` of the socket for 'smc_ismd list'")
	flags.StringVar(&o.statusGroup, "status-group", "", "the `GROUP` of that socket (default: yours)")
	for _, flag := range []string{"fabric", "status-mode", "status-group"} {
		_ = root.RegisterFlagCompletionFunc(flag, cobra.NoFileCompletions)
	}
	root.AddCommand(newCheck(c), newList(c))
	return root
}

// addDir adds the option --dir to a command that uses it.
func (c *command) addDir(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.dir, "dir", defaultDir, "the `DIRECTORY` of the sockets")
	_ = cmd.MarkFlagDirname("dir")
}
