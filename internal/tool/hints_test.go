// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
	"github.com/smckit/smckit/internal/tool/smckit"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// TestHints checks that a remedy names a command as the user has called it, also in JSON.
func TestHints(t *testing.T) {
	for line, want := range map[string]string{
		"smc_conf check /none":             "smc_conf: cannot read the configuration: stat /none: no such file or directory; 'smc_conf save' writes one\n",
		"smckit config check /none":        "smckit config: cannot read the configuration: stat /none: no such file or directory; 'smckit config save' writes one\n",
		"smckit config check /none --json": `"remedy":"'smckit config save' writes one"`,
	} {
		words := strings.Fields(line)
		env, out, stderr := clitest.Env(nil)
		status := cli.Run(t.Context(), find(t, words[0]), env, words[1:])
		if got := out.String() + stderr.String(); status != cli.ExitFailure || !strings.Contains(got, want) {
			t.Errorf("%s: status %d, %q, not %q", line, status, got, want)
		}
	}
}

// TestRemedies checks that no remedy, whatever the host, sends a user of smckit to a command that smckit has under another name, and that
// commands under their own names print it as it is.
func TestRemedies(t *testing.T) {
	var all []string
	for _, c := range check.Conditions() {
		all = append(all, check.Plain(c.Text), check.Plain(c.Remedy))
	}
	for _, r := range netlinksmc.Reasons() {
		all = append(all, r.Remedy())
	}
	for _, r := range catalogue.Reasons() {
		all = append(all, r.Remedy)
	}
	names := 0
	for _, text := range all {
		own, suite := hint(t, cli.Tool{Name: "smc_chk"}, text), hint(t, smckit.Tool, text)
		if own != text {
			t.Errorf("smc_chk prints %q, not %q", own, text)
		}
		if name := ownNames.FindString(suite); name != "" {
			t.Errorf("a user of smckit reads %q in %q", name, suite)
		}
		if ownNames.MatchString(text) {
			names++
		}
	}
	if names < 20 {
		t.Errorf("only %d remedies name commands", names)
	}
}

// hint returns a text as a command of tool prints it.
func hint(t *testing.T, tool cli.Tool, text string) string {
	t.Helper()
	tool.New = func(env *cli.Env) *cobra.Command {
		return &cobra.Command{Use: tool.Name, RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprint(env.Out, env.Hint(text))
			return err
		}}
	}
	env, out, stderr := clitest.Env(nil)
	if status := cli.Run(t.Context(), tool, env, nil); status != cli.ExitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	return out.String()
}

// TestListedRemedies checks the list of all remedies, of both names of the command.
func TestListedRemedies(t *testing.T) {
	for line, want := range map[string]string{
		"smc_chk --conditions":             "'smc_rnics -a' shows it, 'smc_rnics -e' switches it on\n",
		"smckit check --conditions":        "'smckit devices -a' shows it, 'smckit devices -e' switches it on\n",
		"smc_chk --conditions --json":      `"'smc_rnics -a' shows it, 'smc_rnics -e' switches it on"`,
		"smckit check --conditions --json": `"'smckit devices -a' shows it, 'smckit devices -e' switches it on"`,
	} {
		words := strings.Fields(line)
		env, out, _ := clitest.Env(nil)
		if status := cli.Run(t.Context(), find(t, words[0]), env, words[1:]); status != cli.ExitOK || !strings.Contains(out.String(), want) {
			t.Errorf("%s: status %d, no %q", line, status, want)
		}
	}
}
