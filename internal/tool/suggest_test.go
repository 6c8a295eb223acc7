// SPDX-License-Identifier: Apache-2.0

//go:build linux

package tool

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/clitest"
)

// find returns a command of the suite.
func find(t *testing.T, name string) cli.Tool {
	t.Helper()
	for _, tool := range All() {
		if tool.Name == name {
			return tool
		}
	}
	t.Fatalf("there is no command %s", name)
	return cli.Tool{}
}

// TestMistypedCommands checks that every command with words suggests the right one, in one line that names the help to read.
func TestMistypedCommands(t *testing.T) {
	for _, tc := range []struct{ line, want string }{
		{"smc_conf aply", `smc_conf: unknown command "aply" for "smc_conf" (did you mean "apply"?); see 'smc_conf --help'`},
		{"smc_conf foo", `smc_conf: unknown command "foo" for "smc_conf"; see 'smc_conf --help'`},
		{"smc_ismd lst", `smc_ismd: unknown command "lst" for "smc_ismd" (did you mean "list"?); see 'smc_ismd --help'`},
		{"smc_pnet shwo", `smc_pnet: unknown command "shwo" (did you mean "show"?); see 'smc_pnet --help'`},
		{"smc_pnet NET1", `smc_pnet: unknown command "NET1"; see 'smc_pnet --help'`},
		{"smc_policy ad", `smc_policy: unknown command "ad" for "smc_policy" (did you mean "add"?); see 'smc_policy --help'`},
		{"smc_policy namespaces onn", `smc_policy: invalid argument "onn" for "smc_policy namespaces" (did you mean "on"?); see 'smc_policy namespaces --help'`},
		{"smcr linkgrup", `smcr: object "linkgrup" is unknown (did you mean "linkgroup"?); see 'smcr --help'`},
		{"smcr foo", `smcr: object "foo" is unknown; see 'smcr --help'`},
		{"smcr stats rest", `smcr: "rest" is not one of show, reset, json; see 'smcr stats --help'`},
		{"smcd sied", `smcd: object "sied" is unknown (did you mean "seid"?); see 'smcd --help'`},
		{"smcd loopbak on", `smcd: object "loopbak" is unknown (did you mean "loopback"?); see 'smcd --help'`},
		{"smclab uup", `smclab: unknown command "uup" for "smclab" (did you mean "up"?); see 'smclab --help'`},
	} {
		words := strings.Fields(tc.line)
		env, out, stderr := clitest.Env(nil)
		if status := cli.Run(t.Context(), find(t, words[0]), env, words[1:]); status != cli.ExitUsage || out.Len() > 0 || stderr.String() != tc.want+"\n" {
			t.Errorf("%s: exit status %d, %q%q\nwant %q", tc.line, status, out.String(), stderr.String(), tc.want)
		}
	}
}
