// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
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
	Schema int `json:"schema"`
	// entries of the PNET table in the words of its file, without `add`
	Table []string `json:"table"`
	UEIDs []string `json:"ueids"`
	// `enable` or `disable`, if the file has such a line
	SEID string `json:"seid,omitempty"`
	// values by name, as they are written in the file
	Settings map[string]string `json:"settings"`
	// rules of the policy, as `smc_policy export` writes them
	Rules []string `json:"rules"`
}

func (c *command) check(dir string) error {
	want, err := conf.Load(dir)
	if err != nil || !c.json {
		return err
	}
	doc := checkJSON{Schema: 1, Table: []string{}, UEIDs: append([]string{}, want.EIDs.User...), Settings: map[string]string{}}
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
	return cli.WriteJSON(c.env.Out, doc)
}
