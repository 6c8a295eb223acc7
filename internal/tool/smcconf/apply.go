// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/spf13/cobra"
)

// applyOptions are the options for making and reporting changes.
type applyOptions struct {
	// check only predicts changes.
	check bool
	// diff prints the lines of the files that are added and removed.
	diff bool
}

func newApply(c *command) *cobra.Command {
	var o applyOptions
	cmd := dirCommand(&cobra.Command{
		Use:     "apply",
		Short:   "Apply the files to the kernel",
		Long:    applyLong,
		Example: applyExample,
	}, func(ctx context.Context, dir string) error { return c.apply(ctx, dir, o) })
	cmd.Flags().BoolVar(&o.check, "check", false, "only print what would change")
	cmd.Flags().BoolVar(&o.diff, "diff", false, "show changes as lines of the files that are added (+) and removed (-)")
	return cmd
}

// apply changes the kernel's state to that of the files. It reads and checks all files before it accesses the kernel.
func (c *command) apply(ctx context.Context, dir string, o applyOptions) error {
	want, err := conf.Load(dir)
	if err != nil {
		return err
	}
	if o.check {
		return c.applyConfig(ctx, dir, want, o)
	}
	return c.withLock(ctx, func() error { return c.applyConfig(ctx, dir, want, o) })
}

func (c *command) applyConfig(ctx context.Context, dir string, want conf.Config, o applyOptions) error {
	needs := parts{table: len(want.Table) > 0, client: len(want.Settings) > 0 || len(want.EIDs.Lines()) > 0, rules: len(want.Rules) > 0}
	return c.withKernel(ctx, needs, func(k kernel) error {
		p, err := c.makePlan(ctx, k, dir, want)
		if err != nil {
			return err
		}
		if !c.json {
			c.printWarnings(p.warnings)
		}
		if !o.check {
			if err := p.carryOut(ctx); err != nil {
				return err
			}
		}
		return c.report(p, o)
	})
}

// applyJSON is the output of apply with --json. Fields are never removed nor changed under the same schema number.
type applyJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// in the order in which they were made
	Changes  []changeJSON `json:"changes"`
	Warnings []string     `json:"warnings"`
	// with `--diff`
	Diff *diffJSON `json:"diff,omitempty"`
}

// diffJSON has the lines that go and those that come, from which Ansible makes its diff.
type diffJSON struct {
	// the lines that go, `FILE: LINE`
	Before string `json:"before"`
	// the lines that come, in the same form
	After string `json:"after"`
}

type changeJSON struct {
	File   string `json:"file"`
	Action string `json:"action"`
	Name   string `json:"item" schema1:"name"`
	// with `set`
	Before string `json:"old_value,omitempty" schema1:"before"`
	// with `set`
	After string `json:"new_value,omitempty" schema1:"after"`
}

// report prints the changes that were made, or would be made.
func (c *command) report(p *plan, o applyOptions) error {
	if c.json {
		doc := applyJSON{
			Schema: jsondoc.Schema, Changed: len(p.changes) > 0, Check: o.check,
			Changes: []changeJSON{}, Warnings: append([]string{}, p.warnings...),
		}
		for _, ch := range p.changes {
			doc.Changes = append(doc.Changes, changeJSON{ch.file, ch.action, cli.Printable(ch.name), ch.before, ch.after})
		}
		if o.diff {
			doc.Diff = p.diff()
		}
		return c.env.WriteJSON(doc)
	}
	for _, ch := range p.changes {
		for _, line := range ch.lines(o) {
			if _, err := fmt.Fprintln(c.env.Out, cli.Printable(line)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines returns the text of a change.
func (ch change) lines(o applyOptions) []string {
	if o.diff {
		var lines []string
		for _, l := range ch.fileLines() {
			lines = append(lines, ch.file+": "+l)
		}
		return lines
	}
	what := strings.TrimSuffix(ch.file, ".conf") + ": "
	verbs := map[string]string{"add": "added", "delete": "deleted", "set": "set"}
	if o.check {
		verbs = map[string]string{"add": "would add", "delete": "would delete", "set": "would set"}
	}
	line := what + verbs[ch.action] + " " + ch.name
	if ch.action == "set" {
		line += fmt.Sprintf(" to %s (from %s)", ch.after, ch.before)
	}
	return []string{line}
}

// fileLines returns the lines of the file that are removed (-) and added (+).
func (ch change) fileLines() []string {
	name := ch.name
	if ch.file == conf.PNETFile {
		name = "add " + name
	}
	join := " = "
	if ch.file == conf.EIDFile {
		join = " "
	}
	switch ch.action {
	case "add":
		return []string{"+" + name}
	case "delete":
		return []string{"-" + name}
	}
	return []string{"-" + name + join + ch.before, "+" + name + join + ch.after}
}

// diff returns the lines of all files that are removed and added.
func (p *plan) diff() *diffJSON {
	var d diffJSON
	for _, ch := range p.changes {
		for _, l := range ch.fileLines() {
			text := ch.file + ": " + cli.Printable(l[1:]) + "\n"
			if l[0] == '-' {
				d.Before += text
			} else {
				d.After += text
			}
		}
	}
	return &d
}
