// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Kernel is the table that Apply changes; *Client is one.
type Kernel interface {
	// List returns the table, as Client.List does.
	List(ctx context.Context) (Table, error)
	// Add adds an entry, as Client.Add does.
	Add(ctx context.Context, e Entry) error
	// Delete deletes all entries of a PNET ID, as Client.Delete does.
	Delete(ctx context.Context, id ID) error
}

// ErrChanged means that another program changed the table while a plan was made or applied. It is also smcerr.ErrChanged.
var ErrChanged = smcerr.With(errors.New("another program changed the PNET table at the same time"), smcerr.ErrChanged)

// ApplyError is the error of a plan that was not carried out. It unwraps to both errors.
type ApplyError struct {
	// Step is the step that failed.
	Step Step
	// Done is the number of steps that were carried out before it.
	Done int
	// Err is the error of the step.
	Err error
	// Rollback is the error of restoring the table; nil if the table was restored.
	Rollback error
}

// Error returns one line with the failed step, and whether the table was restored.
func (e *ApplyError) Error() string {
	switch {
	case e.Rollback == nil && e.Done == 0:
		return e.Err.Error()
	case e.Rollback == nil:
		return e.Err.Error() + "; the PNET table was restored"
	}
	return fmt.Sprintf("%v; and the PNET table could not be restored: %v", e.Err, e.Rollback)
}

// Unwrap returns both errors.
func (e *ApplyError) Unwrap() []error {
	if e.Rollback == nil {
		return []error{e.Err}
	}
	return []error{e.Err, e.Rollback}
}

// Apply carries out all steps of a plan, or none. If a step fails, or ctx ends, Apply restores the table, in the same order,
// and returns an *ApplyError. Its Rollback reports whether restoring failed too, and which entries are missing then.
//
// The kernel has no transactions. Before the first step Apply checks that the table is the one that the plan was made for, and
// after the last step that it is the result of the plan. If another program changed the table, the error is ErrChanged, and
// Apply leaves the table as it is. Between the steps other programs see a table that is half changed: an entry that is deleted
// and added again is missing for a moment, and a connection that begins in that moment may fall back to TCP. Existing
// connections are not affected. Entries that other programs add at the same time stay, also when Apply restores the table.
//
// Apply does not touch the PNET IDs that devices have from their hardware: they are not in the table.
func Apply(ctx context.Context, k Kernel, p Plan) error {
	if !p.Changed() {
		return nil
	}
	now, err := k.List(ctx)
	if err != nil {
		return err
	}
	if !now.Equal(p.From) {
		return ErrChanged
	}
	for i, s := range p.Steps {
		if err := p.do(ctx, k, s); err != nil {
			// The caller's context may be the reason why the step failed. Even the first step may have had an effect.
			return &ApplyError{Step: s, Done: i, Err: err, Rollback: p.undo(context.WithoutCancel(ctx), k)}
		}
	}
	if now, err = k.List(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("the PNET table was changed, but not checked: %w", err)
	}
	if !now.Same(p.To) {
		return ErrChanged
	}
	return nil
}

// do carries a step out.
func (p Plan) do(ctx context.Context, k Kernel, s Step) error {
	switch {
	case s.Delete:
		return k.Delete(ctx, s.Entry.ID)
	case p.From.Has(s.Entry):
		return addAgain(ctx, k, s.Entry)
	}
	return k.Add(ctx, s.Entry)
}

// addAgain adds an entry that was in the table. Another program may have given it a name that Add refuses.
func addAgain(ctx context.Context, k Kernel, e Entry) error {
	if c, ok := k.(interface {
		addUnchecked(ctx context.Context, e Entry) error
	}); ok {
		return c.addUnchecked(ctx, e)
	}
	return k.Add(ctx, e)
}

// undo restores the table that existed before the plan, plus the entries that other programs have added since.
func (p Plan) undo(ctx context.Context, k Kernel) error {
	now, err := k.List(ctx)
	if err != nil {
		return err
	}
	target := slices.Clone(p.From)
	for _, e := range now.without(p.From).without(p.Added) {
		if _, taken := target.Conflict(e); !taken {
			target = append(target, e)
		}
	}
	return restore(ctx, k, now, target)
}

// restore makes the table target, in that order. It keeps the entries that are equal at the start of both tables and whose PNET
// ID does not have to be deleted, deletes the others, and adds the missing ones. It continues after a failure, to restore as
// many entries as possible.
func restore(ctx context.Context, k Kernel, now, target Table) error {
	kept := commonPrefix(now, target)
	var failed error
	for _, id := range now[kept:].IDs() {
		// The entry was to be deleted anyway.
		if err := k.Delete(ctx, id); err != nil && !errors.Is(err, ErrNoID) {
			failed = cmp.Or(failed, err)
		}
	}
	for _, e := range target[kept:] {
		if err := addAgain(ctx, k, e); err != nil {
			failed = cmp.Or(failed, err)
		}
	}
	if failed == nil {
		return nil
	}
	// One reason is enough for the text: the others follow from it, or are the same.
	return fmt.Errorf("%w%s", failed, missing(ctx, k, target))
}

// commonPrefix returns how many entries at the start of now and target are the same and can stay when the PNET IDs of
// all later entries of now are deleted.
func commonPrefix(now, target Table) int {
	n := 0
	for n < len(now) && n < len(target) && now[n] == target[n] {
		n++
	}
	for i := 0; i < n; i++ {
		if slices.ContainsFunc(now[n:], func(e Entry) bool { return e.ID == now[i].ID }) {
			// Entry i is deleted too, so all entries after it must be deleted as well, and perhaps some before it.
			n, i = i, -1
		}
	}
	return n
}

// missing lists the entries of target that are not in the table, as the end of an error text.
func missing(ctx context.Context, k Kernel, target Table) string {
	now, err := k.List(ctx)
	if err != nil {
		return ""
	}
	var names []string
	for _, e := range target.without(now) {
		names = append(names, e.String())
	}
	if len(names) == 0 {
		return ""
	}
	return " (missing now: " + strings.Join(names, ", ") + ")"
}
