// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// TestWatch checks that --watch shows each listing until the command is interrupted, here in the second round, and that it is for listings
// only.
func TestWatch(t *testing.T) {
	for _, args := range []string{"", "show", "peers", "auto list", "memory show"} {
		h := newHarness(t, "smc port 80")
		h.run(strings.Fields(args)...)
		once := h.out.String()
		ctx, interrupt := context.WithCancel(t.Context())
		rounds := 0
		sys := h.sys
		sys.dial = func(ctx context.Context) (kernel, error) {
			if rounds++; rounds == 2 {
				interrupt()
			}
			return h.sys.dial(ctx)
		}
		var out, errs bytes.Buffer
		env := &cli.Env{In: strings.NewReader(""), Out: &out, Err: &errs, Getenv: func(string) string { return "" }}
		tool := cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, sys) }}
		status := cli.Run(ctx, tool, env, append(strings.Fields(args), "--watch", "0.1"))
		if status != 130 || once == "" || out.String() != once+"\n"+once || errs.Len() > 0 {
			t.Errorf("%s: status %d, %q, %q, not %q twice", args, status, &out, &errs, once)
		}
	}
	h := newHarness(t)
	h.expect(2, "", "smc_policy: peers flush: --watch is for listings; see 'smc_policy peers --help'\n", "peers", "flush", "--watch", "1")
	h.expect(2, "", "smc_policy: memory 64M: --watch is for listings; see 'smc_policy memory --help'\n", "memory", "64M", "--watch", "1")
	h.expect(2, "", "smc_policy: unknown flag: --watch; see 'smc_policy flush --help'\n", "flush", "--watch", "1")
}
