// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"context"
	"errors"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/spf13/cobra"
)

// TestWrongHosts runs the commands on hosts that cannot do what they are to do.
func TestWrongHosts(t *testing.T) {
	for _, file := range []string{"testdata/wrong-smcr.txt", "testdata/wrong-smcd.txt", "testdata/wrong-smckit.txt"} {
		wrongtest.Run(t, file, 18, func(t *testing.T, name string, host wrongtest.Host) wrongtest.Command {
			d := deps{
				open: func(context.Context) (client, error) {
					if host == wrongtest.NoModule || host == wrongtest.NoPermission {
						return netlinksmc.NewFromConn(host.Dial("SMC_GEN_NETLINK", "smckit"))
					}
					return populated(), nil
				},
				ifname:       func(uint32) string { return "eth0" },
				initialNetNS: func() bool { return true },
				baselines:    func() (baselines, error) { return nil, errors.New("the statistics are read before the module") },
				loopback:     t.TempDir() + "/no-module/loopback",
			}
			switch name {
			case "smcr":
				return wrongtest.Command{Tool: fakeTool(techR, d)}
			case "smcd":
				return wrongtest.Command{Tool: fakeTool(techD, d)}
			}
			return wrongtest.Command{Tool: suite(d)}
		})
	}
}

// fakeTool returns smcr or smcd with fakes.
func fakeTool(t tech, d deps) cli.Tool {
	tool := newTool(t)
	tool.New = func(env *cli.Env) *cobra.Command { return newRoot(t, env, d) }
	return tool
}
