// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// killer has a command that asks before it prints that it has ended something.
var killer = Tool{Name: "killer", New: func(env *Env) *cobra.Command {
	cmd := &cobra.Command{Use: "killer", RunE: func(cmd *cobra.Command, _ []string) error {
		if err := env.Confirm(cmd.Context(), "end %d connections", 3); err != nil {
			return err
		}
		_, err := env.Out.Write([]byte("ended\n"))
		return err
	}}
	env.AddYesFlag(cmd.Flags())
	return cmd
}}

// suite has it as its own.
var suite = Tool{
	Name: "suite", New: func(*Env) *cobra.Command { return &cobra.Command{Use: "suite"} },
	Subs: []Sub{{Name: "kill", Tool: killer}},
}

// TestConfirm checks who is asked, and what answers mean.
func TestConfirm(t *testing.T) {
	const question = "suite kill: end 3 connections? [y/N] "
	const no = "suite kill: the answer is no: nothing changed\n"
	for _, tt := range []struct {
		tool        Tool
		args, in    string
		interactive bool
		status      int
		out, stderr string
	}{
		{killer, "", "", false, 0, "ended\n", ""},
		{killer, "", "n\n", true, 0, "ended\n", ""},
		{killer, "--yes", "", false, 2, "", "killer: unknown flag: --yes; see 'killer --help'\n"},
		{suite, "kill", "", false, 1, "", "suite kill: cannot ask whether to end 3 connections, since standard input is no terminal: use --yes\n"},
		{suite, "kill", "y\n", false, 1, "", "suite kill: cannot ask whether to end 3 connections, since standard input is no terminal: use --yes\n"},
		{suite, "kill --yes", "", false, 0, "ended\n", ""},
		{suite, "kill --yes", "n\n", true, 0, "ended\n", ""},
		{suite, "kill", "y\n", true, 0, "ended\n", question},
		{suite, "kill", " YES ", true, 0, "ended\n", question + "\n"},
		{suite, "kill", "n\n", true, 1, "", question + no},
		{suite, "kill", "\n", true, 1, "", question + no},
		{suite, "kill", "", true, 1, "", question + "\n" + no},
		{suite, "kill", "yeah\n", true, 1, "", question + no},
	} {
		env, out, stderr := testEnv()
		env.In, env.Interactive = strings.NewReader(tt.in), tt.interactive
		status := Run(context.Background(), tt.tool, env, strings.Fields(tt.args))
		if status != tt.status || out.String() != tt.out || stderr.String() != tt.stderr {
			t.Errorf("%s %s <%q: status %d, %q, %q", tt.tool.Name, tt.args, tt.in, status, out, stderr)
		}
	}
}
