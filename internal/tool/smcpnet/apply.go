// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"errors"
	"fmt"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

func newApply(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:     "apply {FILE | -}",
		Short:   "Replace the table by a file",
		Long:    applyLong,
		Example: applyExample,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.apply(cmd.Context(), args[0], ch) },
	}
	ch.addFlags(cmd)
	ch.addForce(cmd)
	return cmd
}

// apply changes the table to the content of the file. It finds mistakes in the file before it accesses the kernel.
func (c *command) apply(ctx context.Context, name string, ch change) error {
	wanted, err := c.parseFile(name)
	if err != nil {
		return err
	}
	return c.withTable(ctx, func(t table) error {
		now, err := t.List(ctx)
		if err != nil {
			return err
		}
		plan := pnet.Diff(now, wanted)
		if err := c.checkDevices(plan.Added, ch); err != nil {
			return err
		}
		if !plan.Changed() {
			return c.carryOut(ctx, t, plan, ch, fmt.Sprintf("unchanged: the table is the same as in %s", cli.InputName(name)))
		}
		return c.carryOut(ctx, t, plan, ch)
	})
}

func (c *command) parseFile(name string) (pnet.Table, error) {
	in, err := c.env.OpenInput(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the table file: %w", err)
	}
	defer in.Close()
	wanted, err := pnet.Parse(in, cli.InputName(name))
	if _, ok := errors.AsType[*pnet.ParseError](err); err != nil && !ok {
		return nil, fmt.Errorf("cannot read the table file: %w", err)
	}
	return wanted, err
}
