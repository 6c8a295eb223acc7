// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// Usage is the RunE of a command that needs another word: it prints the words in a few lines, where --help prints everything.
func Usage(cmd *cobra.Command, _ []string) error {
	name := cmd.CommandPath()
	_, operands, _ := strings.Cut(cmd.Use, " ")
	if operands == "" {
		operands = "COMMAND [OPTION]..."
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Usage: %s %s\n", name, operands)
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" {
			fmt.Fprintf(table, "  %s\t%s\n", sub.Name(), sub.Short)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "'%s --help' says more.\n", name)
	return err
}
