// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

func newAuto(c *command) *cobra.Command {
	return c.addLearned(&cobra.Command{
		Use:     "auto [show | flush [--check]]",
		Short:   "Show what services have learned, or forget it",
		Long:    autoLong,
		Example: autoExample,
	}, learned{
		show: c.auto,
		list: func(ctx context.Context, k kernel) (names []string, err error) {
			services, err := k.Services(ctx)
			for _, s := range services {
				names = append(names, s.String())
			}
			return names, err
		},
		forget: func(ctx context.Context, k kernel) error { return k.FlushServices(ctx) },
	})
}

// servicesJSON is the output of auto with --json.
type servicesJSON struct {
	Schema int `json:"schema"`
	// of rules with `auto`, servers first, in the order of their ports
	Services []serviceJSON `json:"services"`
}

// serviceJSON is a service.
type serviceJSON struct {
	Service string `json:"target" schema1:"service"`
	Role    string `json:"role" schema1:",connect"`
	// of new connections: `smc` or `tcp`
	Use    string `json:"verdict" schema1:"use"`
	Paid   uint64 `json:"paid"`
	Unpaid uint64 `json:"unpaid"`
	Open   uint64 `json:"open"`
	// if no connection begins or ends
	Left uint64 `json:"seconds_left"`
}

func (c *command) readServices(ctx context.Context) (services []policy.Service, _ error) {
	err := c.withKernel(ctx, func(k kernel) (err error) {
		services, err = k.Services(ctx)
		return err
	})
	return services, err
}

func (c *command) auto(ctx context.Context) error {
	services, err := c.readServices(ctx)
	if err != nil {
		return err
	}
	if c.json {
		out := servicesJSON{Schema: jsondoc.Schema, Services: []serviceJSON{}}
		for _, s := range services {
			out.Services = append(out.Services, serviceJSON{
				Service: s.String(), Role: roleWord(s.Role), Use: s.Verdict.String(),
				Paid: s.Paid, Unpaid: s.Unpaid, Open: s.Open, Left: uint64(s.Left / time.Second),
			})
		}
		return c.watch.WriteJSON(c.env, out)
	}
	if len(services) == 0 {
		_, err := fmt.Fprintln(c.env.Out, "No service has learned anything.")
		return err
	}
	var rows [][]string
	for _, s := range services {
		rows = append(rows, []string{
			s.String(), s.Verdict.String(), fmt.Sprint(s.Paid), fmt.Sprint(s.Unpaid), fmt.Sprint(s.Open), fmt.Sprint(int(s.Left / time.Second)),
		})
	}
	return cli.WriteTable(c.env.Out, []string{"Service", "Use", "Paid", "Unpaid", "Open", "Left"}, rows)
}
