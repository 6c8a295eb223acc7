// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// policyJSON is the output of show and export with --json. Fields are never removed or changed under the same schema number.
type policyJSON struct {
	Schema int `json:"schema"`
	// if rules are not evaluated, all new connections are TCP
	Enabled   bool `json:"enabled"`
	Inherited bool `json:"inherited,omitempty"`
	// in the order in which they are evaluated
	Rules []ruleJSON `json:"rules"`
}

// ruleJSON is a rule.
type ruleJSON struct {
	Number  int    `json:"rule_number" schema1:"number"`
	Name    string `json:"rule_name,omitempty" schema1:"name"`
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	// of a rule with `from` or `peer`, the connections of listeners instead of their calls
	Decisions uint64 `json:"decisions"`
	// those of a listener included
	SMC uint64 `json:"connections_smc"`
	// except those to a listener that a rule has left to TCP
	TCP uint64 `json:"connections_tcp"`
	// of ended connections, by SMC, in both directions
	Bytes uint64 `json:"bytes"`
}

func newShow(c *command) *cobra.Command {
	cmd := &cobra.Command{
		Use:               "show",
		Aliases:           []string{"list"},
		Short:             "Show the rules, and what they have decided",
		Long:              showLong,
		Example:           showExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.list(cmd.Context(), c.show) },
	}
	c.watch.AddFlag(cmd.Flags())
	return cmd
}

// read returns the policy in the kernel.
func (c *command) read(ctx context.Context) (policy.Policy, error) {
	var out policy.Policy
	err := c.withKernel(ctx, func(k kernel) (err error) {
		out, err = k.Get(ctx)
		return err
	})
	return out, err
}

func (c *command) writeJSON(p policy.Policy) error {
	out := policyJSON{Schema: jsondoc.Schema, Enabled: p.Enabled, Inherited: p.Inherited, Rules: []ruleJSON{}}
	for i, r := range p.Rules {
		out.Rules = append(out.Rules, ruleJSON{
			Number: i + 1, Name: cli.Printable(r.Name), Rule: cli.Printable(r.Text(c.sys.names)), Verdict: r.Verdict.String(),
			Decisions: r.Counters.Decisions, SMC: r.Counters.SMC, TCP: r.Counters.TCP, Bytes: r.Counters.Bytes,
		})
	}
	return c.watch.WriteJSON(c.env, out)
}

func (c *command) show(ctx context.Context) error {
	p, err := c.read(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(p)
	}
	if !p.Enabled {
		if _, err := fmt.Fprintln(c.env.Out, "The policy is off: all new connections are TCP."); err != nil {
			return err
		}
	}
	if len(p.Rules) == 0 {
		text := "There are no rules."
		if p.Inherited {
			text += " Those of the initial network namespace decide."
		}
		_, err := fmt.Fprintln(c.env.Out, text)
		return err
	}
	var rows [][]string
	for i, r := range p.Rules {
		verdict, conditions, _ := strings.Cut(r.Text(c.sys.names), " ")
		if conditions == "" || conditions == "name "+r.Name {
			conditions = strings.TrimSpace(conditions + " (everything)")
		}
		n := r.Counters
		rows = append(rows, []string{
			fmt.Sprint(i + 1), verdict, cli.Printable(conditions), fmt.Sprint(n.Decisions), fmt.Sprint(n.SMC), fmt.Sprint(n.TCP), fmt.Sprint(n.Bytes),
		})
	}
	return cli.WriteTable(c.env.Out, []string{"No", "Use", "Conditions", "Decisions", "SMC", "TCP", "Bytes"}, rows)
}
