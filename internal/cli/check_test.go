// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestCheck(t *testing.T) {
	tool := Tool{
		Name: "tool",
		New: func(env *Env) *cobra.Command {
			ran := func(*cobra.Command, []string) error { t.Error("a command has run"); return nil }
			root := &cobra.Command{Use: "tool", Args: cobra.NoArgs, RunE: ran}
			root.Flags().Int("port", 0, "")
			AddNetNSFlag(root, env)
			sub := &cobra.Command{Use: "add ID", Args: cobra.ExactArgs(1), PreRunE: ran, RunE: ran, PostRunE: ran}
			sub.Flags().Bool("force", false, "")
			root.AddCommand(sub)
			return root
		},
		Rewrite: func(args []string) ([]string, error) {
			if len(args) > 0 && args[0] == "-bad" {
				return nil, Usagef("bad")
			}
			return args, nil
		},
	}
	for line, good := range map[string]bool{
		"": true, "--port 1": true, "--po 1": true, "add x": true, "add --force x": true, "-N blue add x": true, "--help": true,
		"--version": true, "add --help": true,
		"--port x": false, "--prot 1": false, "frob": false, "add": false, "add x y": false, "add --port 1 x": false, "-bad": false,
	} {
		err := Check(tool, strings.Fields(line))
		var usage *UsageError
		if good != (err == nil) || err != nil && !errors.As(err, &usage) {
			t.Errorf("%q: %v", line, err)
		}
	}
}
