// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"testing"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/wrongtest"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// refusing is a kernel that shows everything, and permits nothing.
type refusing struct {
	*fakeKernel
	changes kernel
}

func (r refusing) SetRules(ctx context.Context, generation uint32, rules []policy.Rule) error {
	return r.changes.SetRules(ctx, generation, rules)
}

func (r refusing) Enable(ctx context.Context, generation uint32, on bool) error {
	return r.changes.Enable(ctx, generation, on)
}

func (r refusing) FlushServices(ctx context.Context) error { return r.changes.FlushServices(ctx) }

func (r refusing) ForgetPeers(ctx context.Context) error { return r.changes.ForgetPeers(ctx) }

// TestWrongHosts runs the command on hosts that cannot do what it is to do.
func TestWrongHosts(t *testing.T) {
	wrongtest.Run(t, "testdata/wrong.txt", 20, func(t *testing.T, _ string, host wrongtest.Host) wrongtest.Command {
		h := newHarness(t, "smc port 80 name web", "tcp port 81")
		h.sys.dial = func(context.Context) (kernel, error) {
			k, err := policy.NewFromConn(host.Dial(policy.Family))
			if host == wrongtest.NoPermission {
				return refusing{h.kernel, k}, err
			}
			return h.kernel, err
		}
		return wrongtest.Command{Tool: cli.Tool{Name: toolName, New: func(env *cli.Env) *cobra.Command { return newRoot(env, h.sys) }}}
	})
}
