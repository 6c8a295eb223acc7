// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// ExpandLong completes abbreviated long options like GNU getopt_long: `--list` becomes `--listening` if no other option
// matches. Options named in first are preferred over all others, so that our own options never make an abbreviation ambiguous
// that existing scripts use. ExpandLong does not change ambiguous and unknown options: the parser refuses them.
func ExpandLong(root *cobra.Command, first []string, args []string) []string {
	all := longOptions(root)
	out := slices.Clone(args)
	for i, arg := range out {
		if arg == "--" {
			break
		}
		name, found := strings.CutPrefix(arg, "--")
		if !found {
			continue
		}
		name, value, hasValue := strings.Cut(name, "=")
		full, ok := complete(name, first, all)
		if !ok {
			continue
		}
		out[i] = "--" + full
		if hasValue {
			out[i] += "=" + value
		}
	}
	return out
}

// complete finds the option that name abbreviates.
func complete(name string, first, all []string) (string, bool) {
	if slices.Contains(all, name) {
		return name, true
	}
	for _, names := range [][]string{first, all} {
		var match []string
		for _, n := range names {
			if strings.HasPrefix(n, name) {
				match = append(match, n)
			}
		}
		if len(match) == 1 {
			return match[0], true
		}
	}
	return "", false
}

// longOptions lists the long options of the whole tree, each once.
func longOptions(cmd *cobra.Command) []string {
	// cobra adds these two only while executing.
	names := []string{"help", "version"}
	var walk func(*cobra.Command)
	walk = func(c *cobra.Command) {
		for _, fs := range []*pflag.FlagSet{c.Flags(), c.PersistentFlags()} {
			fs.VisitAll(func(f *pflag.Flag) {
				if !slices.Contains(names, f.Name) {
					names = append(names, f.Name)
				}
			})
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(cmd)
	return names
}
