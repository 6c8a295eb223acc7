// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

func newAuto(c *command) *cobra.Command {
	words := []string{"show", "flush"}
	var check bool
	cmd := &cobra.Command{
		Use:               "auto [show | flush [--check]]",
		Short:             "Show what services have learned, or forget it",
		Long:              autoLong,
		Example:           autoExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(words, noFiles),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch word := strings.Join(args, " "); {
			case word == "flush":
				return c.autoFlush(cmd.Context(), check)
			case word != "" && word != "show":
				return cli.Usagef("auto: %q is not one of %s", word, strings.Join(words, ", "))
			case check:
				return cli.Usagef("--check is for 'auto flush': without it, nothing changes")
			}
			return c.auto(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "with flush, only print what would change")
	return cmd
}

// servicesJSON is the output of auto with --json.
type servicesJSON struct {
	Schema int `json:"schema"`
	// of rules with `auto`, servers first, in the order of their ports
	Services []serviceJSON `json:"services"`
}

// serviceJSON is a service.
type serviceJSON struct {
	// `:PORT` of a server, address and port that clients connect to
	Service string `json:"service"`
	// `listen` or `connect`
	Role string `json:"role"`
	// what new connections are: `smc` or `tcp`
	Use string `json:"use"`
	// connections that have ended and for which SMC pays
	Paid uint64 `json:"paid"`
	// connections that have ended and for which it does not
	Unpaid uint64 `json:"unpaid"`
	// connections that are open
	Open uint64 `json:"open"`
	// until the service is forgotten, if no connection begins or ends
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
		out := servicesJSON{Schema: 1, Services: []serviceJSON{}}
		for _, s := range services {
			out.Services = append(out.Services, serviceJSON{
				Service: s.String(), Role: s.Role.String(), Use: s.Verdict.String(),
				Paid: s.Paid, Unpaid: s.Unpaid, Open: s.Open, Left: uint64(s.Left / time.Second),
			})
		}
		return cli.WriteJSON(c.env.Out, out)
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

// flushJSON is the output of auto flush with --json.
type flushJSON struct {
	Schema int `json:"schema"`
	// whether there was a service to forget
	Changed bool `json:"changed"`
	// whether this is a prediction (`--check`)
	Check bool `json:"check"`
	// services that were forgotten, or would be with `--check`, as `smc_policy auto` shows them
	Forgotten []string `json:"forgotten"`
}

func (c *command) autoFlush(ctx context.Context, check bool) error {
	out := flushJSON{Schema: 1, Check: check, Forgotten: []string{}}
	err := c.withKernel(ctx, func(k kernel) error {
		services, err := k.Services(ctx)
		for _, s := range services {
			out.Forgotten = append(out.Forgotten, s.String())
		}
		out.Changed = len(services) > 0
		if err != nil || check {
			return err
		}
		return k.FlushServices(ctx)
	})
	switch {
	case err != nil:
		return err
	case c.json:
		return cli.WriteJSON(c.env.Out, out)
	case !out.Changed:
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
		return err
	}
	word := "forgot"
	if check {
		word = "would forget"
	}
	for _, s := range out.Forgotten {
		if _, err := fmt.Fprintln(c.env.Out, word, s); err != nil {
			return err
		}
	}
	return nil
}
