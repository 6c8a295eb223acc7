// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// Check reads a command line like Run, but does not run the command. It returns errors in commands, options, their values and
// the number of operands. It does not find errors that a command detects only while it runs. It is for tests of command lines
// in documents.
func Check(t Tool, args []string) error {
	env := &Env{
		In: strings.NewReader(""), Out: io.Discard, Err: io.Discard,
		Getenv:     func(string) string { return "" },
		EnterNetNS: func(string) error { return nil },
	}
	root, err := read(t, env, args)
	if err != nil {
		return err
	}
	disarm(root)
	return root.Execute()
}

// disarm replaces all functions that the commands of the tree would run.
func disarm(cmd *cobra.Command) {
	cmd.PersistentPreRun, cmd.PersistentPreRunE = nil, nil
	cmd.PreRun, cmd.PreRunE = nil, nil
	cmd.PostRun, cmd.PostRunE = nil, nil
	cmd.PersistentPostRun, cmd.PersistentPostRunE = nil, nil
	if cmd.Run != nil || cmd.RunE != nil {
		cmd.RunE, cmd.Run = nil, func(*cobra.Command, []string) {}
	}
	for _, sub := range cmd.Commands() {
		disarm(sub)
	}
}
