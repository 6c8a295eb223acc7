// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

func newApply(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:     "apply {FILE | -}",
		Short:   "Replace the rules by a file",
		Long:    applyLong,
		Example: applyExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.apply(cmd.Context(), args[0], ch) },
	}
	ch.addFlags(cmd)
	ch.addForce(cmd)
	return cmd
}

// apply changes the rules to those of a file. It finds mistakes in the file before it accesses the kernel.
func (c *command) apply(ctx context.Context, name string, ch change) error {
	data, err := c.readFile(name)
	if err != nil {
		return err
	}
	rules, err := policy.ParseFile(string(data), cli.InputName(name), c.sys.names)
	if err != nil {
		return err
	}
	return c.change(ctx, ch, func(now []policy.Rule) ([]policy.Rule, error) {
		for _, r := range rules {
			if slices.ContainsFunc(now, r.Equal) {
				continue
			}
			if err := c.checkCgroup(r, ch); err != nil {
				return nil, fmt.Errorf("%s: %w", cli.Printable(cli.InputName(name)), err)
			}
		}
		return rules, nil
	})
}

func newExport(c *command) *cobra.Command {
	return &cobra.Command{
		Use:               "export",
		Short:             "Print the rules as a file",
		Long:              exportLong,
		Example:           exportExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.export(cmd.Context()) },
	}
}

func (c *command) export(ctx context.Context) error {
	p, err := c.read(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.writeJSON(p)
	}
	_, err = io.WriteString(c.env.Out, c.file(p.Rules))
	return err
}

// newSwitch returns the command on or off.
func newSwitch(c *command, word string) *cobra.Command {
	on := word == "on"
	short, long := "Use the rules again", onLong
	if !on {
		short, long = "Have all new connections use TCP", offLong
	}
	check := false
	cmd := &cobra.Command{
		Use:               word,
		Short:             short,
		Long:              long,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.turn(cmd.Context(), on, check) },
	}
	cmd.Flags().BoolVar(&check, "check", false, "only print what would change")
	return cmd
}

// switchJSON is the output of on and off with --json.
type switchJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// if rules are not evaluated, all new connections are TCP
	Enabled bool `json:"enabled"`
}

func (c *command) turn(ctx context.Context, on, check bool) error {
	changed := false
	err := c.again(ctx, func(k kernel, now policy.Policy) error {
		if changed = now.Enabled != on; !changed || check {
			return nil
		}
		return k.Enable(ctx, now.Generation, on)
	})
	switch {
	case err != nil:
		return err
	case c.json:
		return c.env.WriteJSON(switchJSON{Schema: jsondoc.Schema, Changed: changed, Check: check, Enabled: on})
	case !changed:
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
	case check && on:
		_, err = fmt.Fprintln(c.env.Out, "would use the rules again")
	case check:
		_, err = fmt.Fprintln(c.env.Out, "would have all new connections use TCP")
	}
	return err
}
