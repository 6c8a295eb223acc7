// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
)

func newCheck(c *command) *cobra.Command {
	return dirCommand(&cobra.Command{
		Use:     "check",
		Short:   "Check the files for mistakes",
		Long:    checkLong,
		Example: checkExample,
	}, func(_ context.Context, dir string) error { return c.check(dir) })
}

// checkJSON is the output of check with --json: the content of the files.
type checkJSON struct {
	Schema int      `json:"schema"`
	Table  []string `json:"entry_lines" schema1:"table"`
	UEIDs  []string `json:"ueids"`
	// if the file has such a line
	SEID     string            `json:"seid_setting,omitempty" schema1:"seid"`
	Settings map[string]string `json:"settings"`
	Rules    []string          `json:"rule_lines" schema1:"rules"`
}

func (c *command) check(dir string) error {
	want, err := conf.Load(dir)
	if err != nil || !c.json {
		return err
	}
	doc := checkJSON{Schema: jsondoc.Schema, Table: []string{}, UEIDs: append([]string{}, want.EIDs.User...), Settings: map[string]string{}}
	for _, e := range want.Table {
		doc.Table = append(doc.Table, cli.Printable(e.String()))
	}
	if want.EIDs.System != nil {
		doc.SEID = conf.SystemWord(*want.EIDs.System)
	}
	doc.Rules = []string{}
	for _, r := range want.Rules {
		doc.Rules = append(doc.Rules, cli.Printable(r.Text(policy.SystemNames{})))
	}
	for _, a := range want.Settings {
		doc.Settings[a.Setting.Name] = a.Setting.Format(a.Value)
	}
	return c.env.WriteJSON(doc)
}
