// SPDX-License-Identifier: Apache-2.0

package smcrstats

import (
	"context"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/tool/statdoc/stattest"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the command on hosts that cannot do what it is to do. There, a user without a home directory cannot reset anything.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 12, func(_ *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		d := deps{
			open: func(context.Context) (client, error) {
				if host == wrongtest.NoModule {
					return netlinksmc.NewFromConn(host.Dial("SMC_GEN_NETLINK"))
				}
				return populated(), nil
			},
			now:    time.Now,
			ifname: func(uint32) string { return "eth0" },
			baselines: func() (baselines, error) {
				if host == wrongtest.NoPermission {
					_, err := smcstats.Dir(1000, func(string) string { return "" })
					return nil, err
				}
				return &stattest.Memory{}, nil
			},
		}
		tool := Tool
		tool.New = func(env *cli.Env) *cobra.Command { return newRoot(env, d) }
		return wrongtest.Command{Tool: tool}
	})
}
