// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"fmt"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

func newAdd(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "add PNETID {eth NAME | ib NAME [PORT]}",
		Short:             "Attach a device to a PNET ID",
		Long:              addLong,
		Example:           addExample,
		ValidArgsFunction: c.completeEntry,
		RunE: func(cmd *cobra.Command, args []string) error {
			entry, err := parseEntry("add", args)
			if err != nil {
				return err
			}
			return c.addEntries(cmd.Context(), pnet.Table{entry}, ch)
		},
	}
	ch.addFlags(cmd)
	ch.addForce(cmd)
	return cmd
}

func newDel(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "del PNETID [eth NAME | ib NAME [PORT]]",
		Aliases:           []string{"delete"},
		Short:             "Delete a PNET ID, or detach one device from it",
		Long:              delLong,
		Example:           delExample,
		ValidArgsFunction: c.completeMember,
		RunE: func(cmd *cobra.Command, args []string) error {
			entry, err := parseEntry("del", args)
			if err != nil {
				return err
			}
			return c.del(cmd.Context(), entry, ch)
		},
	}
	ch.addFlags(cmd)
	cmd.Flags().BoolVar(&ch.ignoreMissing, "ignore-missing", false, "succeed also if there is nothing to delete")
	return cmd
}

func newFlush(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "flush",
		Short:             "Delete all entries",
		Long:              flushLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.flush(cmd.Context(), ch) },
	}
	ch.addFlags(cmd)
	c.env.AddYesFlag(cmd.Flags())
	return cmd
}

// parseEntry parses the operands of add and del.
func parseEntry(verb string, args []string) (pnet.Entry, error) {
	parsed, err := pnet.ParseArgs(append([]string{verb}, args...))
	if err != nil {
		return pnet.Entry{}, &cli.UsageError{Err: err}
	}
	return parsed.Entry, nil
}

// addEntries adds all entries or none. It skips entries that already exist.
func (c *command) addEntries(ctx context.Context, entries pnet.Table, ch change) error {
	return c.withTable(ctx, func(t table) error {
		now, err := t.List(ctx)
		if err != nil {
			return err
		}
		var unchanged []string
		for _, e := range entries {
			other, taken := now.Conflict(e)
			if taken && other != e {
				return c.conflict(e, other)
			}
			if taken {
				unchanged = append(unchanged, "unchanged: "+e.String()+" is already in the table")
			}
		}
		plan := pnet.Diff(now, append(now[:len(now):len(now)], entries...))
		if err := c.checkDevices(plan.Added, ch); err != nil {
			return err
		}
		return c.carryOut(ctx, t, plan, ch, unchanged...)
	})
}

// conflict returns the error that the entry other prevents e.
func (c *command) conflict(e, other pnet.Entry) error {
	return remedy.Errorf(fmt.Sprintf("remove that entry first with '%s del %s'", c.env.Name(), other), "%s cannot be added to PNET ID %s: it is in the table as '%s';", e.Device(), e.ID, other)
}

// del deletes all entries of a PNET ID or, if entry has a device, only that entry.
func (c *command) del(ctx context.Context, entry pnet.Entry, ch change) error {
	drop := func(e pnet.Entry) bool {
		switch {
		case e.ID != entry.ID:
			return false
		case entry.Eth == "" && entry.IB == "":
			return true
		}
		return e.Eth == entry.Eth && e.IB == entry.IB && (entry.Port == 0 || e.Port == entry.Port)
	}
	return c.withTable(ctx, func(t table) error {
		now, err := t.List(ctx)
		if err != nil {
			return err
		}
		plan := pnet.Diff(now, without(now, drop))
		if !plan.Changed() && !ch.ignoreMissing {
			return c.notThere(entry)
		}
		if !plan.Changed() {
			return c.carryOut(ctx, t, plan, ch, "unchanged: "+describe(entry)+" is not in the table")
		}
		return c.carryOut(ctx, t, plan, ch)
	})
}

// notThere returns the error that an entry to delete is not in the table.
func (c *command) notThere(e pnet.Entry) error {
	return remedy.Errorf(fmt.Sprintf("'%s show' lists the entries", c.env.Name()), "%s is not in the table;", describe(e))
}

// describe describes the entries to delete.
func describe(e pnet.Entry) string {
	switch {
	case e.Eth == "" && e.IB == "":
		return "PNET ID " + string(e.ID)
	case e.IB != "" && e.Port == 0:
		return string(e.ID) + " ib " + e.IB
	}
	return e.String()
}

// flush deletes all entries. It needs no plan, because the kernel has a request for this.
func (c *command) flush(ctx context.Context, ch change) error {
	return c.withTable(ctx, func(t table) error {
		now, err := t.List(ctx)
		if err != nil {
			return err
		}
		plan := pnet.Diff(now, nil)
		if !ch.check {
			if plan.Changed() {
				if err := c.env.Confirm(ctx, "delete all entries of the PNET table, of which there are %d", len(now)); err != nil {
					return err
				}
			}
			if err := t.Flush(ctx); err != nil {
				return err
			}
		}
		if !plan.Changed() && !ch.silent {
			return c.report(plan, ch, []string{"unchanged: the table is empty"})
		}
		return c.report(plan, ch, nil)
	})
}
