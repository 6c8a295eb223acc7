// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/unitfile"
	"github.com/spf13/cobra"
)

// complete completes methods and the command: names of programs, or files if the word contains a slash. It completes arguments
// of the command as files.
func complete(cmd *cobra.Command, env *cli.Env, sys *system) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(begun, "/") {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return programs(env.Getenv("PATH"), begun), cobra.ShellCompDirectiveDefault
	}
	// These fail only for flags that do not exist.
	_ = cmd.RegisterFlagCompletionFunc("method",
		cobra.FixedCompletions([]string{methodAuto, "preload", "seccomp"}, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("unit", func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return unitfile.Search{Root: sys.root}.Names(), cobra.ShellCompDirectiveNoFileComp
	})
	for _, name := range []string{"rcvbuf", "sndbuf", "port", "to", "not", "argv0"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

// programs lists the programs in the directories of PATH whose names have this prefix.
func programs(path, begun string) []cobra.Completion {
	var names []string
	for _, dir := range filepath.SplitList(path) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), begun) && executable(filepath.Join(dir, e.Name())) == nil {
				names = append(names, e.Name())
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
