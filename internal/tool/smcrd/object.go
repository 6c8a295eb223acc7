// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// ToolLinks is the object link of smcr, as a command of another tool.
var ToolLinks = objectTool(techR, "link")

// ToolEID is the object ueid of smcr, as a command of another tool.
var ToolEID = objectTool(techR, "ueid")

// objectTool returns an object of smcr or smcd as a tool, with the options and the grammar of that command.
func objectTool(t tech, name string) cli.Tool {
	return cli.Tool{
		Name: t.name() + " " + name,
		New:  func(env *cli.Env) *cobra.Command { return detach(newRoot(t, env, systemDeps(t, env)), name) },
		Rewrite: func(args []string) ([]string, error) {
			return grammar(t).rewriteObject(name, args)
		},
		Long: incumbentOptions,
	}
}

// detach takes an object out of the tree below root, with the options of root.
func detach(root *cobra.Command, name string) *cobra.Command {
	for _, cmd := range root.Commands() {
		if cmd.Name() == name {
			cmd.PersistentFlags().AddFlagSet(root.PersistentFlags())
			cmd.PersistentPreRunE = root.PersistentPreRunE
			root.RemoveCommand(cmd)
			return cmd
		}
	}
	return root
}

// rewriteObject is rewrite for the words and options after an object.
func (g grammar) rewriteObject(name string, args []string) ([]string, error) {
	out, err := g.rewrite(append([]string{name}, args...))
	if len(out) > 0 && out[0] == name {
		out = out[1:]
	}
	return out, err
}
