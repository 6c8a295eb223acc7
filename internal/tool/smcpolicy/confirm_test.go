// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"bytes"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// suite runs a command as 'smckit policy', with an answer, on a terminal if there is one. It returns its status and standard error.
func (h *harness) suite(answer, args string) (status int, stderr string) {
	h.t.Helper()
	suite := cli.Tool{
		Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
		Subs: []cli.Sub{{Name: "policy", Tool: cli.Tool{
			Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) },
		}}},
	}
	var out, errs bytes.Buffer
	env := &cli.Env{
		In: strings.NewReader(answer), Out: &out, Err: &errs, Interactive: answer != "", Getenv: func(string) string { return "" },
	}
	status = cli.Run(h.t.Context(), suite, env, append([]string{"policy"}, strings.Fields(args)...))
	return status, errs.String()
}

// TestFlushAsks checks that 'smckit policy' deletes nothing without a yes: no rules, and not what the module has learned.
func TestFlushAsks(t *testing.T) {
	for command, tc := range map[string]struct {
		question string
		left     func(k *fakeKernel) int
	}{
		"flush":       {"delete all rules of the policy, of which there are 2", func(k *fakeKernel) int { return len(k.policy.Rules) }},
		"peers flush": {"forget all that 'peers' shows, 2 lines", func(k *fakeKernel) int { return len(k.peers) }},
		"auto flush":  {"forget all that 'auto' shows, 2 lines", func(k *fakeKernel) int { return len(k.services) }},
	} {
		ask := "smckit policy: " + tc.question + "? [y/N] "
		for _, run := range []struct {
			answer, args, stderr string
			status, left         int
		}{
			{"", "", "smckit policy: cannot ask whether to " + tc.question + ", since standard input is no terminal: use --yes\n", 1, 2},
			{"n\n", "", ask + "smckit policy: the answer is no: nothing changed\n", 1, 2},
			{"y\n", "", ask, 0, 0},
			{"", " --yes", "", 0, 0},
			{"", " --check", "", 0, 2},
		} {
			h := newHarness(t, "smc port 80", "tcp port 81")
			h.kernel.peers, h.kernel.services = make([]policy.Peer, 2), make([]policy.Service, 2)
			status, stderr := h.suite(run.answer, command+run.args)
			if left := tc.left(h.kernel); status != run.status || stderr != run.stderr || left != run.left {
				t.Errorf("%s%s, %q: status %d, %d left, %q, not %q", command, run.args, run.answer, status, left, stderr, run.stderr)
			}
		}
	}
}

// TestFlushNothing checks that nothing is asked if there is nothing to forget.
func TestFlushNothing(t *testing.T) {
	for _, command := range []string{"flush", "peers flush", "auto flush"} {
		if status, stderr := newHarness(t).suite("", command); status != 0 || stderr != "" {
			t.Errorf("%s: status %d, %q", command, status, stderr)
		}
	}
}
