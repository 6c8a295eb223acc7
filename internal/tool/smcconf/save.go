// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/spf13/cobra"
)

func newSave(c *command) *cobra.Command {
	var check bool
	cmd := dirCommand(&cobra.Command{
		Use:     "save",
		Short:   "Write the kernel's configuration to the files",
		Long:    saveLong,
		Example: saveExample,
	}, func(ctx context.Context, dir string) error { return c.save(ctx, dir, check) })
	cmd.Flags().BoolVar(&check, "check", false, "only print which files would be written")
	return cmd
}

// saveJSON is the output of save with --json.
type saveJSON struct {
	Schema  int  `json:"schema"`
	Changed bool `json:"changed"`
	Check   bool `json:"check"`
	// that were written, or would be
	Files []string `json:"files"`
}

// save writes the files whose content differs from the kernel's state.
func (c *command) save(ctx context.Context, dir string, check bool) error {
	do := func() error {
		return c.withKernel(ctx, parts{table: true, client: true, rules: true}, func(k kernel) error { return c.saveFrom(ctx, k, dir, check) })
	}
	if check {
		return do()
	}
	return c.withLock(ctx, do)
}

func (c *command) saveFrom(ctx context.Context, k kernel, dir string, check bool) error {
	before, err := conf.Read(dir)
	if errors.Is(err, os.ErrNotExist) {
		before, err = conf.Texts{}, nil
	}
	if err != nil {
		return err
	}
	config, err := before.Parse(dir)
	if err != nil {
		return remedy.Errorf("correct that first, or move the file away", "%w;", err)
	}
	after, err := c.present(ctx, k, before, config)
	if err != nil {
		return err
	}
	// Other programs may have set values in the kernel that a file cannot express.
	if _, err := after.Parse(dir); err != nil {
		return fmt.Errorf("nothing was written, since it could not be read again: %w", err)
	}
	doc := saveJSON{Schema: jsondoc.Schema, Check: check, Files: []string{}}
	for _, name := range conf.Files {
		if after[name] == before[name] {
			continue
		}
		path := filepath.Join(dir, name)
		if !check {
			if err := c.write(dir, name, after[name]); err != nil {
				return fmt.Errorf("cannot write %s: %w%s", path, err, written(doc.Files))
			}
		}
		doc.Files = append(doc.Files, path)
	}
	doc.Changed = len(doc.Files) > 0
	if c.json {
		return c.env.WriteJSON(doc)
	}
	verb := "wrote"
	if check {
		verb = "would write"
	}
	for _, path := range doc.Files {
		if _, err := fmt.Fprintln(c.env.Out, verb, cli.Printable(path)); err != nil {
			return err
		}
	}
	return nil
}

// written returns the end of an error message, which lists the files that were written before saving failed.
func written(files []string) string {
	if len(files) == 0 {
		return ""
	}
	return "; written before that: " + strings.Join(files, ", ")
}

func (c *command) write(dir, name, text string) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return conf.WriteFile(filepath.Join(dir, name), text)
}

// present returns the texts of the files, changed to the kernel's state.
func (c *command) present(ctx context.Context, k kernel, texts conf.Texts, config conf.Config) (conf.Texts, error) {
	now, err := k.table.List(ctx)
	if err != nil {
		return nil, err
	}
	table, err := conf.MergeTable(texts[conf.PNETFile], now, func(e pnet.Entry) bool { return c.leftOut(now, e) })
	if err != nil {
		return nil, fmt.Errorf("the PNET table cannot be written to a file: %w", err)
	}
	eids, err := mergeEIDs(ctx, k.client, texts[conf.EIDFile], config.EIDs)
	if err != nil {
		return nil, err
	}
	values := map[string]uint64{}
	for _, s := range conf.Settings {
		value, err := c.readSetting(ctx, k.client, s)
		if errors.Is(err, errNoSetting) {
			continue
		}
		if err != nil {
			return nil, err
		}
		values[s.Name] = value
	}
	rules := texts[conf.PolicyFile]
	if k.rules != nil {
		now, err := k.rules.Get(ctx)
		if err != nil {
			return nil, err
		}
		rules = conf.MergeRules(rules, now.Rules)
	}
	return conf.Texts{
		conf.PNETFile:     table,
		conf.EIDFile:      eids,
		conf.SettingsFile: conf.MergeSettings(texts[conf.SettingsFile], values),
		conf.PolicyFile:   rules,
	}, nil
}

// leftOut reports whether apply has left an entry out of the table because its device does not exist yet.
func (c *command) leftOut(now pnet.Table, e pnet.Entry) bool {
	if _, taken := now.Conflict(e); taken {
		return false
	}
	there, err := pnetdev.Present(c.sys.devices, e)
	return err != nil || !there
}

// mergeEIDs changes the text of the file of EIDs to those of the host. The file contains a line about the system EID if it
// contained one before, or if the system EID is disabled: without a line, it is in use. If the kernel has no EIDs, the text
// stays.
func mergeEIDs(ctx context.Context, k client, text string, config conf.EIDs) (string, error) {
	user, err := ueids(ctx, k)
	if errors.Is(err, netlinksmc.ErrNotSupported) {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	seid, err := k.SEID(ctx)
	if err != nil {
		return "", err
	}
	e := conf.EIDs{User: user}
	if seid != nil && (!seid.Enabled || config.System != nil) {
		e.System = &seid.Enabled
	}
	return conf.MergeEIDs(text, e), nil
}
