// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"fmt"

	"github.com/smckit/smckit/internal/cli"
	"github.com/spf13/cobra"
)

// namespacesJSON is the output of namespaces with --json. Fields are never removed or changed under the same schema number.
type namespacesJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	// whether network namespaces without rules use the rules of the initial one
	Enabled bool `json:"enabled"`
}

func newNamespaces(c *command) *cobra.Command {
	words := []string{"on", "off"}
	return &cobra.Command{
		Use:       "namespaces [on | off]",
		Short:     "Have network namespaces without rules use the rules of the host",
		Long:      namespacesLong,
		Example:   namespacesExample,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: words,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.showNamespaces()
			}
			return c.setNamespaces(args[0] == "on")
		},
	}
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
		return cli.WriteJSON(c.env.Out, namespacesJSON{Schema: 1, Enabled: value != "0"})
	}
	text := "off: each network namespace has only its own rules"
	if value != "0" {
		text = "on: network namespaces without rules use those of the initial one"
	}
	_, err = fmt.Fprintln(c.env.Out, text)
	return err
}

func (c *command) setNamespaces(on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	changed, err := c.writeSetting(c.namespacesSetting("have network namespaces use the rules of the host"), value)
	if err != nil {
		return err
	}
	if c.json {
		return cli.WriteJSON(c.env.Out, namespacesJSON{Schema: 1, Changed: changed, Enabled: on})
	}
	if !changed {
		_, err = fmt.Fprintln(c.env.Out, "unchanged")
	}
	return err
}
