// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// ErrChanged means that another program changed the table while a plan was made or applied.
var ErrChanged = errors.New("another program changed the PNET table at the same time")

// ApplyError is a plan that was not carried out. It unwraps to both errors.
type ApplyError struct {
	// Step is what failed.
	Step Step
	// Done is the number of steps that were carried out before it.
	Done int
	// Err is why it failed.
	Err error
	// Rollback is why the table could not be made again what it was; nil if it is what it was.
	Rollback error
}

// Error returns one line that says what failed and whether the table is what it was.
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
// The kernel has no transactions. Before the first step Apply checks that the table is the one that the plan was made for,
// and after the last step that it is the one that the plan promises. If another program changed the table, the error is
// ErrChanged, and Apply leaves the table as it is. Between the steps other programs see a table that is half changed: an
// entry that is deleted and added again is missing for a moment, and a connection that begins in that moment may fall back
// to TCP. Existing connections are not affected. Entries that other programs add meanwhile stay, also when Apply restores
// the table.
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
			// The caller's context may be why the step failed. Even the first step may have had an effect.
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

// undo makes the table what it was before the plan, plus what others have added meanwhile.
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

// restore makes the table target, in that order. It keeps what stands at the start of both and is not of a PNET ID that
// has to be deleted, deletes the rest, and adds what is missing. It goes on after a failure, so that as much as
// possible is there in the end.
func restore(ctx context.Context, k Kernel, now, target Table) error {
	kept := commonPrefix(now, target)
	var failed error
	for _, id := range now[kept:].IDs() {
		// That it is gone is what was wanted.
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
			// Entry i goes as well, and so must all that follow it; and perhaps some before it.
			n, i = i, -1
		}
	}
	return n
}

// missing says which entries of target are not in the table, as the end of an error text.
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
