// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

// change has the options for making and reporting a change.
type change struct {
	// check only predicts changes.
	check bool
	// diff prints the lines of the table that are added and removed.
	diff bool
	// force accepts devices that do not exist.
	force bool
	// future accepts them too, and warns.
	future bool
	// ignoreMissing accepts that an entry to delete does not exist.
	ignoreMissing bool
	// silent prints nothing about changes, like smc-tools.
	silent bool
}

func (ch *change) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&ch.check, "check", false, "only print what would change")
	cmd.Flags().BoolVar(&ch.diff, "diff", false, "show the lines that are added to (+) and removed from (-) the table")
}

func (ch *change) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&ch.force, "force", false, "accept devices that do not exist yet")
}

// changeJSON is the output of commands that change the table with --json. Fields are never removed or changed under the same
// schema number.
type changeJSON struct {
	Schema  int         `json:"schema"`
	Changed bool        `json:"changed"`
	Check   bool        `json:"check"`
	Added   []entryJSON `json:"entries_added" schema1:"added"`
	Removed []entryJSON `json:"entries_removed" schema1:"removed"`
	// with `--diff`
	Diff *diffJSON `json:"diff,omitempty"`
}

// diffJSON has whole tables in the form of table files, from which Ansible makes its diff.
type diffJSON struct {
	// the whole table
	Before string `json:"before"`
	// the same
	After string `json:"after"`
}

// carryOut applies a plan and reports it. unchanged has a line for each requested change that is not necessary.
func (c *command) carryOut(ctx context.Context, t table, p pnet.Plan, ch change, unchanged ...string) error {
	if !ch.check {
		if err := pnet.Apply(ctx, t, p); err != nil {
			return c.explain(err)
		}
	}
	return c.report(p, ch, unchanged)
}

// report prints the changes, or the predicted changes.
func (c *command) report(p pnet.Plan, ch change, unchanged []string) error {
	if c.json {
		out := changeJSON{
			Schema: jsondoc.Schema, Changed: p.Changed(), Check: ch.check,
			Added: entriesJSON(p.Added), Removed: entriesJSON(p.Removed),
		}
		if ch.diff {
			out.Diff = &diffJSON{Before: lines(p.From), After: lines(p.To)}
		}
		return c.env.WriteJSON(out)
	}
	if ch.silent && p.Changed() {
		return nil
	}
	removed, added := "deleted", "added"
	switch {
	case ch.diff:
		removed, added = "-add", "+add"
	case ch.check:
		removed, added = "would delete", "would add"
	}
	if err := printEach(c.env.Out, removed, p.Removed); err != nil {
		return err
	}
	if err := printEach(c.env.Out, added, p.Added); err != nil {
		return err
	}
	for _, line := range unchanged {
		if _, err := fmt.Fprintln(c.env.Out, cli.Printable(line)); err != nil {
			return err
		}
	}
	return nil
}

func printEach(w io.Writer, what string, entries pnet.Table) error {
	for _, e := range entries {
		if _, err := fmt.Fprintf(w, "%s %s\n", what, cli.Printable(e.String())); err != nil {
			return err
		}
	}
	return nil
}

// lines returns a table in the format of a table file. It also prints entries that such a file cannot express.
func lines(t pnet.Table) string {
	var s strings.Builder
	for _, e := range t {
		s.WriteString("add " + cli.Printable(e.String()) + "\n")
	}
	return s.String()
}

// explain adds to an error of Apply the cause, if it can be found on this machine.
func (c *command) explain(err error) error {
	aerr, ok := errors.AsType[*pnet.ApplyError](err)
	if !ok {
		return err
	}
	if errors.Is(err, context.Canceled) && aerr.Rollback != nil {
		// cli prints nothing for an interrupted command, but must print this.
		return errors.New(err.Error())
	}
	return pnetdev.Explain(c.sys.hardware, err)
}

// without returns the entries of t for which drop is false.
func without(t pnet.Table, drop func(pnet.Entry) bool) pnet.Table {
	var out pnet.Table
	for _, e := range t {
		if !drop(e) {
			out = append(out, e)
		}
	}
	return out
}
