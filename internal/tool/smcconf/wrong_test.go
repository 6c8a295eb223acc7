// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. DIR has a table with one entry.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 10, func(t *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		h := newHarness(t)
		h.write(h.dir+"/"+conf.PNETFile, "add NET1 eth eth0\n")
		h.write(h.dir+"/no-table", "")
		h.table.NoModule, h.table.Unprivileged = host == wrongtest.NoModule, host == wrongtest.NoPermission
		if host == wrongtest.NoModule {
			h.sys.dialClient = func(context.Context) (client, error) { return netlinksmc.NewFromConn(host.Dial()) }
		}
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) }
		return wrongtest.Command{Tool: tool, Dir: h.dir}
	})
}
