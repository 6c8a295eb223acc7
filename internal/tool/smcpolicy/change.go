// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

// change has the options for making and reporting a change.
type change struct {
	// check only predicts changes.
	check bool
	// diff prints the rules that are added and removed.
	diff bool
	// force accepts control groups that do not exist.
	force bool
	// ignoreMissing accepts that a rule to delete does not exist.
	ignoreMissing bool
	// at is the position of a new rule, if place is set; else it comes to the end.
	at    int
	place bool
}

func (ch *change) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&ch.check, "check", false, "only print what would change")
	cmd.Flags().BoolVar(&ch.diff, "diff", false, "show the rules that are added (+) and removed (-) among those around them")
}

func (ch *change) addForce(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&ch.force, "force", false, "accept control groups that do not exist yet")
}

func newAdd(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "add {smc | tcp | auto} [CONDITION VALUE]...",
		Short:             "Add a rule",
		Long:              addLong,
		Example:           addExample,
		ValidArgsFunction: c.completeRule,
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := policy.Parse(args, c.sys.names)
			if err != nil {
				return &cli.UsageError{Err: err}
			}
			ch.place = cmd.Flags().Changed("at")
			return c.add(cmd.Context(), r, ch)
		},
	}
	ch.addFlags(cmd)
	ch.addForce(cmd)
	cmd.Flags().IntVar(&ch.at, "at", 0, "insert the rule as number `N` of the list (default: at the end)")
	return cmd
}

func newDel(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "del {NAME | NUMBER}",
		Aliases:           []string{"delete"},
		Short:             "Delete a rule",
		Long:              delLong,
		Example:           delExample,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: c.completeName,
		RunE:              func(cmd *cobra.Command, args []string) error { return c.del(cmd.Context(), args[0], ch) },
	}
	ch.addFlags(cmd)
	cmd.Flags().BoolVar(&ch.ignoreMissing, "ignore-missing", false, "succeed also if there is no such rule")
	return cmd
}

func newFlush(c *command) *cobra.Command {
	var ch change
	cmd := &cobra.Command{
		Use:               "flush",
		Short:             "Delete all rules",
		Long:              flushLong,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.change(cmd.Context(), ch, func(now []policy.Rule) ([]policy.Rule, error) {
				if ch.check || len(now) == 0 {
					return nil, nil
				}
				return nil, c.env.Confirm(cmd.Context(), "delete all rules of the policy, of which there are %d", len(now))
			})
		},
	}
	ch.addFlags(cmd)
	c.env.AddYesFlag(cmd.Flags())
	return cmd
}

// add inserts a rule. A rule that is there already, with the same name, stays as it is.
func (c *command) add(ctx context.Context, r policy.Rule, ch change) error {
	return c.change(ctx, ch, func(now []policy.Rule) ([]policy.Rule, error) {
		at := len(now)
		if ch.place {
			at = ch.at - 1
		}
		if at < 0 || at > len(now) {
			return nil, fmt.Errorf("there is no position %d: positions are 1 to %d", ch.at, len(now)+1)
		}
		if i := slices.IndexFunc(now, r.Equal); i >= 0 {
			if ch.place && i != at {
				return nil, remedy.Errorf(fmt.Sprintf("delete it first with '%s del %d'", c.env.Name(), i+1), "the rule is there already, as number %d", i+1)
			}
			return now, nil
		}
		if err := policy.Check(append(slices.Clone(now), r)); err != nil {
			return nil, remedy.Errorf(fmt.Sprintf("'%s del' deletes a rule", c.env.Name()), "the rule cannot be added: %w", err)
		}
		if err := c.checkCgroup(r, ch); err != nil {
			return nil, err
		}
		return slices.Insert(slices.Clone(now), at, r), nil
	})
}

// checkCgroup wants the control group of a rule to exist.
func (c *command) checkCgroup(r policy.Rule, ch change) error {
	if r.Cgroup == "" || ch.force {
		return nil
	}
	if c.sys.cgroups == "" {
		return errors.New("this host has no control groups of version 2, so no rule can name one")
	}
	if info, err := os.Stat(filepath.Join(c.sys.cgroups, r.Cgroup)); err == nil && info.IsDir() {
		return nil
	}
	return remedy.Errorf("'systemd-cgls' lists them; --force adds a rule for one that does not exist yet", "control group %s does not exist", cli.Printable(r.Cgroup[1:]))
}

// find returns the index of a rule by its name or its number in the list, -1 if there is none.
func find(rules []policy.Rule, which string) int {
	if n, err := strconv.ParseUint(which, 10, 16); err == nil {
		if n == 0 || int(n) > len(rules) {
			return -1
		}
		return int(n) - 1
	}
	return slices.IndexFunc(rules, func(r policy.Rule) bool { return r.Name == which && which != "" })
}

// del deletes a rule by its name or its number in the list. If the list changes meanwhile, the number is still that of the rule that
// it was first.
func (c *command) del(ctx context.Context, which string, ch change) error {
	var id uint32
	return c.change(ctx, ch, func(now []policy.Rule) ([]policy.Rule, error) {
		i := find(now, which)
		if id != 0 {
			i = slices.IndexFunc(now, func(r policy.Rule) bool { return r.ID == id })
		}
		if i >= 0 {
			id = now[i].ID
			return slices.Delete(slices.Clone(now), i, i+1), nil
		}
		if ch.ignoreMissing {
			return now, nil
		}
		var names []string
		for _, r := range now {
			if r.Name != "" {
				names = append(names, r.Name)
			}
		}
		return nil, remedy.Errorf(fmt.Sprintf("'%s show' lists the rules", c.env.Name()),
			"there is no rule %s%s", cli.Printable(strconv.Quote(which)), cli.Suggest(which, names...))
	})
}

// tries is how often a change is made to a policy that another program changes.
const tries = 10

// again calls f with the policy, and again if another program has changed that meanwhile.
func (c *command) again(ctx context.Context, f func(k kernel, now policy.Policy) error) error {
	return c.withKernel(ctx, func(k kernel) error {
		for n := 1; ; n++ {
			now, err := k.Get(ctx)
			if err != nil {
				return err
			}
			if err = f(k, now); n == tries || !errors.Is(err, policy.ErrChanged) {
				return err
			}
		}
	})
}

// change replaces the rules by those that f makes of them, and reports that.
func (c *command) change(ctx context.Context, ch change, f func(now []policy.Rule) ([]policy.Rule, error)) error {
	var d policy.Difference
	err := c.again(ctx, func(k kernel, now policy.Policy) error {
		then, err := f(now.Rules)
		if err != nil {
			return err
		}
		d = policy.Compare(now.Rules, then)
		if ch.check || !d.Changed() {
			return nil
		}
		return k.SetRules(ctx, now.Generation, d.To)
	})
	if err != nil {
		return err
	}
	return c.report(d, ch)
}

// changeJSON is the output of commands that change the rules with --json. Fields are never removed or changed under the same schema
// number.
type changeJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// a rule that only moves is in both lists
	Added   []string `json:"rules_added" schema1:"added"`
	Removed []string `json:"rules_removed" schema1:"removed"`
	// with `--diff`
	Diff *diffJSON `json:"diff,omitempty"`
}

// diffJSON has whole lists in the form of a file, from which Ansible makes its diff.
type diffJSON struct {
	// all rules
	Before string `json:"before"`
	// the same
	After string `json:"after"`
}

// report prints the changes, or the predicted changes.
func (c *command) report(d policy.Difference, ch change) error {
	if c.json {
		out := changeJSON{Schema: jsondoc.Schema, Changed: d.Changed(), Check: ch.check, Added: c.texts(d.Added), Removed: c.texts(d.Removed)}
		if ch.diff {
			out.Diff = &diffJSON{Before: c.file(d.From), After: c.file(d.To)}
		}
		return c.env.WriteJSON(out)
	}
	lines := c.changes(d, ch)
	switch {
	case !d.Changed():
		lines = []string{"unchanged"}
	case ch.diff:
		lines = c.diffLines(d)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(c.env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// changes returns a line for each rule that changes. A rule that only moves has one line.
func (c *command) changes(d policy.Difference, ch change) (lines []string) {
	remove, move, insert := "deleted ", "moved ", "added "
	if ch.check {
		remove, move, insert = "would delete ", "would move ", "would add "
	}
	for _, r := range d.Removed {
		word := remove
		if d.Moved(r) {
			word = move
		}
		lines = append(lines, word+c.text(r))
	}
	for _, r := range d.Added {
		if !d.Moved(r) {
			lines = append(lines, insert+c.text(r))
		}
	}
	return lines
}

// contextLines is how many rules that stay are shown around those that change.
const contextLines = 3

// diffLines returns the rules that change among those around them, as diff -u does, so that a rule that moves can be seen to move.
func (c *command) diffLines(d policy.Difference) (lines []string) {
	for _, l := range d.Context(contextLines) {
		if l.Mark == 0 {
			lines = append(lines, "...")
		} else {
			lines = append(lines, string(l.Mark)+c.text(l.Rule))
		}
	}
	return lines
}

// text returns a rule as words.
func (c *command) text(r policy.Rule) string { return cli.Printable(r.Text(c.sys.names)) }

// texts returns rules as words, never nil.
func (c *command) texts(rules []policy.Rule) []string {
	out := make([]string, 0, len(rules))
	for _, r := range rules {
		out = append(out, c.text(r))
	}
	return out
}

// file returns rules in the form of a file.
func (c *command) file(rules []policy.Rule) (text string) {
	for _, line := range c.texts(rules) {
		text += line + "\n"
	}
	return text
}

// maxFile is the size of the largest file that is read; the longest list of rules is shorter.
const maxFile = 8 << 20

// readFile returns the content of a file, or of standard input.
func (c *command) readFile(name string) ([]byte, error) {
	in, err := c.env.OpenInput(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read the policy file: %w", err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("cannot read the policy file: %w", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB: it is no file of rules", cli.Printable(cli.InputName(name)), maxFile>>20)
	}
	return data, nil
}
