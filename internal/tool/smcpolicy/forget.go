// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"context"
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/spf13/cobra"
)

// learned is something that the module has learned and can forget: services or peers.
type learned struct {
	show func(context.Context) error
	// list returns each in words, as show has them.
	list func(context.Context, kernel) ([]string, error)
	// forget has the module forget all.
	forget func(context.Context, kernel) error
}

// forgetJSON is the output of auto flush and peers flush with --json. Fields are never removed or changed under the same schema number.
type forgetJSON struct {
	Schema int `json:"schema"`
	// if there was something to forget
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// services or peers, as the command without `flush` shows them
	Forgotten []string `json:"forgotten"`
}

// addLearned makes cmd show or flush what the module has learned.
func (c *command) addLearned(cmd *cobra.Command, l learned) *cobra.Command {
	words := []string{"show", "flush"}
	name := cmd.Name()
	var check bool
	cmd.Args = cobra.MaximumNArgs(1)
	cmd.ValidArgsFunction = cobra.FixedCompletions(words, noFiles)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch word := strings.Join(args, " "); {
		case word == "flush" && c.watch.On():
			return cli.Usagef("%s flush: --watch is for listings", name)
		case word == "flush":
			return c.flushLearned(cmd.Context(), name, l, check)
		case word != "" && word != "show" && word != "list":
			return cli.Usagef("%s: %q is not one of %s", name, word, strings.Join(words, ", "))
		case check:
			return cli.Usagef("--check is for '%s flush': without it, nothing changes", name)
		}
		return c.list(cmd.Context(), l.show)
	}
	cmd.Flags().BoolVar(&check, "check", false, "with flush, only print what would change")
	c.watch.AddFlag(cmd.Flags())
	c.env.AddYesFlag(cmd.Flags())
	return cmd
}

func (c *command) flushLearned(ctx context.Context, name string, l learned, check bool) error {
	out := forgetJSON{Schema: jsondoc.Schema, Check: check, Forgotten: []string{}}
	err := c.withKernel(ctx, func(k kernel) error {
		names, err := l.list(ctx, k)
		out.Forgotten = append(out.Forgotten, names...)
		out.Changed = len(names) > 0
		if err != nil || check {
			return err
		}
		if out.Changed {
			if err := c.env.Confirm(ctx, "forget all that '%s' shows, %d lines", name, len(names)); err != nil {
				return err
			}
		}
		return l.forget(ctx, k)
	})
	switch {
	case err != nil:
		return err
	case c.json:
		return c.env.WriteJSON(out)
	case !out.Changed:
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
		return err
	}
	word := "forgot"
	if check {
		word = "would forget"
	}
	for _, name := range out.Forgotten {
		if _, err := fmt.Fprintln(c.env.Out, word, name); err != nil {
			return err
		}
	}
	return nil
}
