// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

const rootLong = `%[2]s shows and controls what the kernel knows about %[1]s: link groups, devices,
statistics, enterprise IDs.

Options come before or after the object, with one dash or two. Objects,
sub-commands and options may be abbreviated. If several match, the first in this
order counts:

  objects   %[3]s
  options   absolute version details help

Without --json the text is that of smc-tools. A header is printed only if there
is something to list. Names are those of the network namespace in which the
command runs; see -N.

With --json the output is one JSON document whose first field is "schema": 2.
Fields may be added under that number; none is removed or changes its meaning.

Exit status:
  0  done, also if there is nothing to list
  1  failed
  2  the command line is wrong`

const rootExample = `  # SMC capabilities of this host
  %[1]s info

  # link groups with all details
  %[1]s -d linkgroup

  # statistics since the last reset, in detail
  %[1]s -d stats

  # the same in another network namespace, every 2 seconds, for a program
  %[1]s -N blue stats --json --watch 2`

func newRoot(t tech, env *cli.Env, d deps) *cobra.Command {
	o := &options{tech: t, env: env, deps: d}
	name := t.name()
	root := &cobra.Command{
		Use:   name + " [OPTIONS] OBJECT [COMMAND]",
		Short: "Show and control " + t.label(),
		Long: fmt.Sprintf(rootLong, t.label(), name,
			strings.Join(grammar(t).objects(), " ")),
		Example: fmt.Sprintf(rootExample, name),
		Args:    cobra.NoArgs,
		RunE:    cli.Usage,
	}
	flags := root.PersistentFlags()
	flags.BoolVarP(&o.absolute, "absolute", "a", false, "with stats: count from module load, not from the last reset")
	flags.CountVarP(&o.details, "details", "d", "show details; twice for more of them")
	cli.AddJSONFlag(flags, env, &o.json, "print one JSON document")
	cli.AddNetNSFlag(root, env)
	root.AddCommand(newDevice(o), newLinkGroup(o), newInfo(o), newStats(o), newUEID(o), newLimit(o))
	if t == techD {
		root.AddCommand(newSEID(o), newLoopback(o))
	} else {
		root.AddCommand(newLink(o))
	}
	return root
}

// wantsHelp reports whether the words after an object ask for its help.
func wantsHelp(args []string) bool {
	if len(args) != 1 {
		return false
	}
	word, ok := abbreviated(args[0], "help")
	return ok && word == "help"
}

// subcommand returns the word that the sub-command in args abbreviates, or def if there is none. It refuses further words.
func subcommand(args []string, def string, words ...string) (string, error) {
	if len(args) == 0 {
		return def, nil
	}
	word, ok := abbreviated(listIsShow(args)[0], words...)
	if !ok {
		return "", cli.Usagef("%q is not one of %s", args[0], strings.Join(words, ", "))
	}
	if len(args) > 1 {
		return "", cli.Usagef("%q is an unexpected word", args[1])
	}
	return word, nil
}

// listIsShow returns args with the word "show" for the word "list", which all commands of the suite take. It has no abbreviation, because
// those of smc-tools keep their meaning.
func listIsShow(args []string) []string {
	if len(args) > 0 && args[0] == "list" {
		return append([]string{"show"}, args[1:]...)
	}
	return args
}

// words completes the first operand from a list.
func words(list ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}
