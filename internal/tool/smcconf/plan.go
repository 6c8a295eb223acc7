// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/internal/pnetdev"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/pkg/smcerr"
)

// change is a change of one item of the kernel's configuration.
type change struct {
	// file is the file that demands the change.
	file string
	// action is "add", "delete" or "set".
	action string
	// name is the item that is added, deleted or set. before and after are the values of an item that is set.
	name, before, after string
}

// step makes several changes, either all of them or none.
type step struct {
	do, undo func(ctx context.Context) error
}

// plan contains the steps that change the kernel's state to that of the files.
type plan struct {
	changes  []change
	steps    []step
	warnings []string
}

func (p *plan) warnf(format string, args ...any) {
	p.warnings = append(p.warnings, cli.OneLine(fmt.Sprintf(format, args...)))
}

// kernel is the kernel whose state plans read and change. Parts that a plan does not use may be nil.
type kernel struct {
	table  table
	client client
	rules  rules
}

// parts says which parts of the kernel a configuration uses.
type parts struct{ table, client, rules bool }

// withKernel opens the parts of the kernel that the configuration uses, and calls f with them. If the module has no policy, there are
// no rules.
func (c *command) withKernel(ctx context.Context, needs parts, f func(kernel) error) error {
	var k kernel
	var err error
	if needs.table {
		if k.table, err = c.sys.dialTable(ctx); err != nil {
			return err
		}
		defer k.table.Close()
	}
	if needs.client {
		if k.client, err = c.sys.dialClient(ctx); err != nil {
			return err
		}
		defer k.client.Close()
	}
	if needs.rules {
		switch k.rules, err = c.sys.dialRules(ctx); {
		case errors.Is(err, smcerr.ErrNoModule):
			k.rules = nil
		case err != nil:
			return err
		default:
			defer k.rules.Close()
		}
	}
	return f(k)
}

// makePlan compares the kernel with the files. The steps that the kernel is most likely to refuse come last, so that there is
// little to undo.
func (c *command) makePlan(ctx context.Context, k kernel, dir string, want conf.Config) (*plan, error) {
	p := &plan{}
	if err := c.planSettings(ctx, p, k.client, dir, want.Settings); err != nil {
		return nil, err
	}
	if err := c.planEIDs(ctx, p, k.client, dir, want.EIDs); err != nil {
		return nil, err
	}
	if err := c.planTable(ctx, p, k.table, dir, want.Table); err != nil {
		return nil, err
	}
	if err := planRules(ctx, p, k.rules, dir, want.Rules); err != nil {
		return nil, err
	}
	return p, nil
}

// planRules accepts control groups that do not exist: at boot, services have not been started yet.
func planRules(ctx context.Context, p *plan, k rules, dir string, want []policy.Rule) error {
	if len(want) == 0 {
		return nil
	}
	if k == nil {
		p.warnf("%s is left out: only smckit's module has a policy", filepath.Join(dir, conf.PolicyFile))
		return nil
	}
	now, err := k.Get(ctx)
	if err != nil {
		return err
	}
	way := policy.Compare(now.Rules, want)
	if !way.Changed() {
		return nil
	}
	for _, r := range way.Removed {
		p.changes = append(p.changes, change{file: conf.PolicyFile, action: "delete", name: r.Text(policy.SystemNames{})})
	}
	for _, r := range way.Added {
		p.changes = append(p.changes, change{file: conf.PolicyFile, action: "add", name: r.Text(policy.SystemNames{})})
	}
	p.steps = append(p.steps, step{
		do:   func(ctx context.Context) error { return k.SetRules(ctx, now.Generation, way.To) },
		undo: func(ctx context.Context) error { return restoreRules(ctx, k, now.Rules) },
	})
	return nil
}

// restoreRules restores rules. Those that have gone meanwhile begin to count again.
func restoreRules(ctx context.Context, k rules, was []policy.Rule) error {
	now, err := k.Get(ctx)
	if err != nil {
		return err
	}
	for i := range was {
		was[i].ID = 0
	}
	return k.SetRules(ctx, now.Generation, policy.Compare(now.Rules, was).To)
}

func (c *command) planSettings(ctx context.Context, p *plan, k client, dir string, want []conf.Assignment) error {
	for _, a := range want {
		now, err := c.readSetting(ctx, k, a.Setting)
		if errors.Is(err, errNoSetting) {
			p.warnf("%s: %s is left out: %v", filepath.Join(dir, conf.SettingsFile), a, err)
			continue
		}
		if err != nil {
			return err
		}
		if now == a.Value {
			continue
		}
		p.changes = append(p.changes, change{
			file: conf.SettingsFile, action: "set", name: a.Setting.Name,
			before: a.Setting.Format(now), after: a.Setting.Format(a.Value),
		})
		p.steps = append(p.steps, step{
			do:   func(ctx context.Context) error { return c.writeSetting(ctx, k, a.Setting, a.Value) },
			undo: func(ctx context.Context) error { return c.writeSetting(ctx, k, a.Setting, now) },
		})
	}
	return nil
}

// planEIDs adds EIDs as long as there is room before it deletes others, so that the host always has an EID. Without any, the
// kernel would enable the system EID.
func (c *command) planEIDs(ctx context.Context, p *plan, k client, dir string, want conf.EIDs) error {
	if len(want.User) > 0 {
		now, err := ueids(ctx, k)
		if err != nil {
			return err
		}
		missing := without(want.User, now)
		surplus := without(now, want.User)
		n := len(now)
		for len(missing)+len(surplus) > 0 {
			if len(missing) > 0 && n < conf.MaxUEIDs {
				p.addEID(k, missing[0])
				missing = missing[1:]
				n++
				continue
			}
			p.deleteEID(k, surplus[0])
			surplus = surplus[1:]
			n--
		}
	}
	if want.System == nil {
		return nil
	}
	seid, err := k.SEID(ctx)
	if err != nil {
		return err
	}
	on := *want.System
	switch {
	case seid == nil && on:
		p.warnf("%s: the system EID cannot be enabled: this host has none", filepath.Join(dir, conf.EIDFile))
	case seid != nil && seid.Enabled != on:
		p.changes = append(p.changes, change{
			file: conf.EIDFile, action: "set", name: "seid", before: conf.SystemWord(!on), after: conf.SystemWord(on),
		})
		p.steps = append(p.steps, step{
			do:   func(ctx context.Context) error { return k.SetSEID(ctx, on) },
			undo: func(ctx context.Context) error { return k.SetSEID(ctx, !on) },
		})
	}
	return nil
}

func (p *plan) addEID(k client, eid string) {
	p.changes = append(p.changes, change{file: conf.EIDFile, action: "add", name: eid})
	p.steps = append(p.steps, step{
		do:   func(ctx context.Context) error { return k.AddUEID(ctx, eid) },
		undo: func(ctx context.Context) error { return removeUEID(ctx, k, eid) },
	})
}

func (p *plan) deleteEID(k client, eid string) {
	p.changes = append(p.changes, change{file: conf.EIDFile, action: "delete", name: eid})
	p.steps = append(p.steps, step{
		do:   func(ctx context.Context) error { return removeUEID(ctx, k, eid) },
		undo: func(ctx context.Context) error { return k.AddUEID(ctx, eid) },
	})
}

// removeUEID removes a user EID. It is no failure if the kernel then enables the system EID.
func removeUEID(ctx context.Context, k client, eid string) error {
	err := k.RemoveUEID(ctx, eid)
	if errors.Is(err, netlinksmc.ErrSEIDActivated) {
		return nil
	}
	return err
}

// without returns the elements of a that are not in b.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// planTable leaves out entries for devices that do not exist, although the kernel would accept them: the stock module looks for
// an interface only when it is registered, not when udev renames it a moment later. Entries that are already in the table stay.
func (c *command) planTable(ctx context.Context, p *plan, k table, dir string, want pnet.Table) error {
	if len(want) == 0 {
		return nil
	}
	now, err := k.List(ctx)
	if err != nil {
		return err
	}
	var wanted pnet.Table
	for _, e := range want {
		there := now.Has(e)
		if !there {
			if there, err = pnetdev.Present(c.sys.devices, e); err != nil {
				return fmt.Errorf("cannot find out which devices exist: %w", err)
			}
		}
		if !there {
			p.warnf("%s: %s is left out until the next apply: %s", filepath.Join(dir, conf.PNETFile), e, pnetdev.Missing(e))
			continue
		}
		wanted = append(wanted, e)
	}
	way := pnet.Diff(now, wanted)
	if !way.Changed() {
		return nil
	}
	for _, e := range way.Removed {
		p.changes = append(p.changes, change{file: conf.PNETFile, action: "delete", name: e.String()})
	}
	for _, e := range way.Added {
		p.changes = append(p.changes, change{file: conf.PNETFile, action: "add", name: e.String()})
	}
	p.steps = append(p.steps, step{
		do:   func(ctx context.Context) error { return pnetdev.Explain(c.sys.hardware, pnet.Apply(ctx, k, way)) },
		undo: func(ctx context.Context) error { return restoreTable(ctx, k, way.From) },
	})
	return nil
}

// restoreTable restores the table. The order of its entries has no meaning.
func restoreTable(ctx context.Context, k table, was pnet.Table) error {
	now, err := k.List(ctx)
	if err != nil {
		return err
	}
	return pnet.Apply(ctx, k, pnet.Diff(now, was))
}

// carryOut runs all steps. If one fails, it undoes the previous ones.
func (p *plan) carryOut(ctx context.Context) error {
	for i, s := range p.steps {
		err := ctx.Err()
		if err == nil {
			err = s.do(ctx)
		}
		if err != nil {
			return p.undo(ctx, i, err)
		}
	}
	return nil
}

// undo undoes the first n steps, because of err.
func (p *plan) undo(ctx context.Context, n int, err error) error {
	var failed error
	for _, s := range slices.Backward(p.steps[:n]) {
		// Use a context without cancellation: the step may have failed because the context was cancelled.
		failed = errors.Join(failed, s.undo(context.WithoutCancel(ctx)))
	}
	if aerr, ok := errors.AsType[*pnet.ApplyError](err); ok && aerr.Rollback != nil {
		// Do not wrap err, here and below: cli prints nothing for an interrupted command, but must print this.
		err = errors.New(err.Error())
	}
	switch {
	case failed != nil:
		return remedy.Errorf(fmt.Sprintf("'%s apply --check' shows what differs", toolName), "%v; and the changes before it could not be undone: %v;", err, failed)
	case n > 0:
		return fmt.Errorf("%w; the changes before it were undone", err)
	}
	return err
}
