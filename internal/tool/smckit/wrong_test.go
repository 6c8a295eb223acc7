// SPDX-License-Identifier: Apache-2.0

package smckit

import (
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs smckit with outputs that cannot be written. That a host has no module, or that something is not permitted, is an
// answer, not an error.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 5, func(_ *testing.T, _ string, _ wrongtest.Host) wrongtest.Command {
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, busy().deps()) }
		return wrongtest.Command{Tool: tool}
	})
}
