// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"fmt"
	"io"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// tableJSON is the output of show and export with --json.
type tableJSON struct {
	Schema int `json:"schema"`
	// in the kernel's order
	Entries []entryJSON `json:"entries"`
}

// entryJSON is an entry.
type entryJSON struct {
	PNETID string `json:"pnet_id"`
	Type   string `json:"type"`
	// or the name of a network interface, if `type` is `eth`
	Device string `json:"device"`
	// `ib` only
	Port uint8 `json:"port,omitempty"`
}

func entriesJSON(t pnet.Table) []entryJSON {
	out := make([]entryJSON, 0, len(t))
	for _, e := range t {
		j := entryJSON{PNETID: cli.Printable(string(e.ID)), Type: "eth", Device: cli.Printable(e.Eth)}
		if !e.IsEth() {
			j.Type, j.Device, j.Port = "ib", cli.Printable(e.IB), e.Port
		}
		out = append(out, j)
	}
	return out
}

func newShow(c *command) *cobra.Command {
	return &cobra.Command{
		Use:               "show [PNETID]",
		Aliases:           []string{"list"},
		Short:             "Show the table, or the entries of one PNET ID",
		Long:              showLong,
		Example:           showExample,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: c.completeID,
		RunE: func(cmd *cobra.Command, args []string) error {
			var id pnet.ID
			if len(args) > 0 {
				var err error
				if id, err = pnet.ParseID(args[0]); err != nil {
					return &cli.UsageError{Err: err}
				}
			}
			return c.show(cmd.Context(), id)
		},
	}
}

// show prints the entries of one PNET ID, or of all if id is "".
func (c *command) show(ctx context.Context, id pnet.ID) error {
	t, err := c.read(ctx)
	if err != nil {
		return err
	}
	if id != "" {
		t = t.Of(id)
	}
	if c.json {
		return c.env.WriteJSON(tableJSON{Schema: jsondoc.Schema, Entries: entriesJSON(t)})
	}
	for _, e := range t {
		if err := writeRow(c.env.Out, e); err != nil {
			return err
		}
	}
	return nil
}

// writeRow prints an entry like smc-tools. Missing fields are n/a or 255.
func writeRow(w io.Writer, e pnet.Entry) error {
	eth, ib, port := e.Eth, "n/a", uint8(255)
	if !e.IsEth() {
		eth, ib, port = "n/a", e.IB, e.Port
	}
	_, err := fmt.Fprintf(w, "%s %s %s %d\n", cli.Printable(string(e.ID)), cli.Printable(eth), cli.Printable(ib), port)
	return err
}

func newExport(c *command) *cobra.Command {
	return &cobra.Command{
		Use:               "export",
		Short:             "Print the table as a file",
		Long:              exportLong,
		Example:           exportExample,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE:              func(cmd *cobra.Command, _ []string) error { return c.export(cmd.Context()) },
	}
}

func (c *command) export(ctx context.Context) error {
	t, err := c.read(ctx)
	if err != nil {
		return err
	}
	if c.json {
		return c.env.WriteJSON(tableJSON{Schema: jsondoc.Schema, Entries: entriesJSON(t)})
	}
	text, err := t.Format()
	if err != nil {
		return fmt.Errorf("the table has an entry that a table file cannot have: %w", err)
	}
	if c.env.Terminal {
		text = lines(t)
	}
	_, err = io.WriteString(c.env.Out, text)
	return err
}

// read returns the kernel's table.
func (c *command) read(ctx context.Context) (pnet.Table, error) {
	var out pnet.Table
	err := c.withTable(ctx, func(t table) (err error) {
		out, err = t.List(ctx)
		return err
	})
	return out, err
}
