// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"fmt"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/spf13/cobra"
)

// namespacesJSON is the output of namespaces with --json. Fields are never removed or changed under the same schema number.
type namespacesJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// then network namespaces without rules use the rules of the initial one
	Enabled bool `json:"enabled"`
}

func newNamespaces(c *command) *cobra.Command {
	words := []string{"show", "list", "on", "off"}
	check := false
	cmd := &cobra.Command{
		Use:       "namespaces [show | on | off]",
		Short:     "Have network namespaces without rules use the rules of the host",
		Long:      namespacesLong,
		Example:   namespacesExample,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: words,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && (args[0] == "on" || args[0] == "off"):
				return c.setNamespaces(args[0] == "on", check)
			case check:
				return cli.Usagef("--check is for on and off: without them, nothing changes")
			}
			return c.showNamespaces()
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "with on or off, only print what would change")
	return cmd
}

func (c *command) namespacesSetting(op string) setting {
	return setting{name: policyForNamespaces, op: op, hostOnly: "only the initial network namespace has the rules for others"}
}

func (c *command) showNamespaces() error {
	value, err := c.readSetting(c.namespacesSetting("read whether network namespaces use the rules of the host"))
	if err != nil {
		return err
	}
	if c.json {
		return c.env.WriteJSON(namespacesJSON{Schema: jsondoc.Schema, Enabled: value != "0"})
	}
	text := "off: each network namespace has only its own rules"
	if value != "0" {
		text = "on: network namespaces without rules use those of the initial one"
	}
	_, err = fmt.Fprintln(c.env.Out, text)
	return err
}

func (c *command) setNamespaces(on, check bool) error {
	value := "0"
	if on {
		value = "1"
	}
	changed, err := c.writeSetting(c.namespacesSetting("have network namespaces use the rules of the host"), value, check)
	switch {
	case err != nil:
		return err
	case c.json:
		return c.env.WriteJSON(namespacesJSON{Schema: jsondoc.Schema, Changed: changed, Check: check, Enabled: on})
	case !changed:
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
	case check && on:
		_, err = fmt.Fprintln(c.env.Out, "would have network namespaces without rules use those of the initial one")
	case check:
		_, err = fmt.Fprintln(c.env.Out, "would leave each network namespace only its own rules")
	}
	return err
}
