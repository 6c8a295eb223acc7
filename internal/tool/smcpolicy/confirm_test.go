// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// TestFlushAsks checks that 'smckit policy flush' does not delete the rules without a yes.
func TestFlushAsks(t *testing.T) {
	const refusal = "smckit policy: cannot ask whether to delete all rules of the policy, of which there are 2, since standard input is no terminal: use --yes\n"
	for args, want := range map[string]string{"flush": refusal, "flush --yes": "", "flush --check": ""} {
		h := newHarness(t, "smc port 80", "tcp port 81")
		suite := cli.Tool{
			Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
			Subs: []cli.Sub{{Name: "policy", Tool: cli.Tool{
				Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) },
			}}},
		}
		var out, errs bytes.Buffer
		env := &cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		status := cli.Run(t.Context(), suite, env, append([]string{"policy"}, strings.Fields(args)...))
		left := 2
		if args == "flush --yes" {
			left = 0
		}
		if errs.String() != want || (status == 0) != (want == "") || len(h.kernel.policy.Rules) != left {
			t.Errorf("%s: status %d, %d rules, %s", args, status, len(h.kernel.policy.Rules), &errs)
		}
	}
}
