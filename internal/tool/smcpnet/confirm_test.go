// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// TestFlushAsks checks that 'smckit pnet' does not delete the table without a yes, in both spellings.
func TestFlushAsks(t *testing.T) {
	const refusal = "smckit pnet: cannot ask whether to delete all entries of the PNET table, of which there are 1, since standard input is no terminal: use --yes\n"
	for _, tt := range []struct {
		args     string
		empty    bool
		status   int
		log, err string
	}{
		{args: "flush", status: 1, err: refusal},
		{args: "-f", status: 1, err: refusal},
		{args: "flush --yes", log: "flush"},
		{args: "-f --yes", log: "flush"},
		{args: "flush --check"},
		{args: "flush", empty: true, log: "flush"},
	} {
		h := newHarness(t, someRows()[:1]...)
		if tt.empty {
			h.kernel.Rows = nil
		}
		suite := cli.Tool{
			Name: "smckit", New: func(*cli.Env) *cobra.Command { return &cobra.Command{Use: "smckit"} },
			Subs: []cli.Sub{{Name: "pnet", Tool: h.tool()}},
		}
		status := h.runTool(t, suite, append([]string{"pnet"}, strings.Fields(tt.args)...)...)
		if log := strings.Join(h.kernel.Log, "\n"); status != tt.status || log != tt.log || h.err.String() != tt.err {
			t.Errorf("%s: status %d, requests %q, %s", tt.args, status, log, &h.err)
		}
	}
}
