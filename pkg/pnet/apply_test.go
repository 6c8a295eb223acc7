// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/pnet"
)

// kernel returns a fake with the entries of t.
func kernel(t pnet.Table) *pnettest.Kernel {
	k := &pnettest.Kernel{}
	for _, e := range t {
		if e.IsEth() {
			k.Rows = append(k.Rows, pnettest.Eth(string(e.ID), e.Eth))
		} else {
			k.Rows = append(k.Rows, pnettest.IB(string(e.ID), e.IB, e.Port))
		}
	}
	return k
}

// list returns the table, even if the fake refuses requests.
func list(t *testing.T, c *pnet.Client) pnet.Table {
	t.Helper()
	got, err := c.List(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// failAt refuses the n-th change.
func failAt(n int) func(int) syscall.Errno {
	return func(i int) syscall.Errno {
		if i == n {
			return syscall.ENOMEM
		}
		return 0
	}
}

func TestApply(t *testing.T) {
	from := table(t, "A eth e1; A eth e2; B ib m 2")
	to := table(t, "A eth e2; B ib m 2; B eth e1; C eth e3")
	k := kernel(from)
	c := dial(t, k)
	p := pnet.Diff(list(t, c), to)
	if err := pnet.Apply(t.Context(), c, p); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"add C eth e3", "del A", "add A eth e2", "add B eth e1"}, k.Log); diff != "" {
		t.Error(diff)
	}
	if got := list(t, c); !got.Equal(p.To) || !got.Same(to) {
		t.Errorf("got %v, want %v", got, p.To)
	}
	k.Log = nil
	if err := pnet.Apply(t.Context(), c, pnet.Diff(list(t, c), to)); err != nil || len(k.Log) > 0 {
		t.Errorf("applied again: %v, %q", err, k.Log)
	}
}

// TestApplyRollsBack lets every step of many plans fail and expects the table as it was, in the same order.
func TestApplyRollsBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		from, to := randomTable(r), randomTable(r)
		plan := pnet.Diff(from, to)
		for i := range plan.Steps {
			k := kernel(from)
			k.Fail = failAt(i + 1)
			c := dial(t, k)
			err := pnet.Apply(t.Context(), c, plan)
			var aerr *pnet.ApplyError
			if !errors.As(err, &aerr) || !errors.Is(err, syscall.ENOMEM) || aerr.Rollback != nil {
				t.Fatalf("step %d of %s: error %v", i, words(plan.Steps), err)
			}
			if aerr.Step != plan.Steps[i] || aerr.Done != i {
				t.Fatalf("step %d of %s: reported as step %d, %v", i, words(plan.Steps), aerr.Done, aerr.Step)
			}
			if got := list(t, c); !got.Equal(from) {
				t.Fatalf("step %d of %s: left %v, was %v; did %q", i, words(plan.Steps), got, from, k.Log)
			}
		}
	}
}

// TestApplyCanceled ends the context after each step.
func TestApplyCanceled(t *testing.T) {
	from, to := table(t, "A eth e1; A eth e2; B eth e3"), table(t, "A eth e2; C eth e1; C eth e4")
	plan := pnet.Diff(from, to)
	for i := range plan.Steps {
		ctx, cancel := context.WithCancel(t.Context())
		k := kernel(from)
		k.Fail = func(n int) syscall.Errno {
			if n == i+1 {
				cancel()
			}
			return 0
		}
		c := dial(t, k)
		err := pnet.Apply(ctx, c, plan)
		if i == len(plan.Steps)-1 {
			if err != nil || !list(t, c).Same(to) {
				t.Errorf("after the last step: %v, %v", err, list(t, c))
			}
			continue
		}
		if !errors.Is(err, context.Canceled) || !list(t, c).Equal(from) {
			t.Errorf("after step %d: error %v, left %v", i, err, list(t, c))
		}
	}
}

// TestApplyRollbackFails refuses everything from some change on.
func TestApplyRollbackFails(t *testing.T) {
	from := table(t, "A eth e1; A eth e2; A ib m 2")
	k := kernel(from)
	k.Fail = func(n int) syscall.Errno {
		if n >= 3 {
			return syscall.ENOMEM
		}
		return 0
	}
	c := dial(t, k)
	err := pnet.Apply(t.Context(), c, pnet.Diff(from, table(t, "A eth e1; A ib m 2")))
	var aerr *pnet.ApplyError
	if !errors.As(err, &aerr) || aerr.Rollback == nil {
		t.Fatalf("error %v", err)
	}
	for _, want := range []string{
		"adding A ib m 2: cannot allocate memory", "could not be restored",
		"missing now: A eth e2, A ib m 2",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %q, want %q in it", err, want)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("error %q is more than one line", err)
	}
	// Entries that did not have to change have stayed.
	if got := list(t, c); !got.Equal(table(t, "A eth e1")) {
		t.Errorf("left %v", got)
	}
}

// TestApplyStrangeEntries has entries in the table that this package would not add.
func TestApplyStrangeEntries(t *testing.T) {
	from := pnet.Table{
		eth("A", ""), eth("A", "n/a"), ib("A", "", 1), eth("A", "e1"), ib("A", "a b", 2), eth("N\xd6T", "e2"),
	}
	k := kernel(from)
	c := dial(t, k)
	if got := list(t, c); !got.Equal(from) {
		t.Fatalf("got %v, want %v", got, from)
	}
	to := append(pnet.Table{}, from[:3]...)
	to = append(to, from[4:]...)
	plan := pnet.Diff(from, to)
	for i := range plan.Steps {
		k.Log = nil
		k.Fail = failAt(i + 1)
		if err := pnet.Apply(t.Context(), c, plan); err == nil || !list(t, c).Equal(from) {
			t.Errorf("step %d: error %v, left %v", i, err, list(t, c))
		}
	}
	k.Fail = nil
	if err := pnet.Apply(t.Context(), c, plan); err != nil || !list(t, c).Same(to) {
		t.Errorf("error %v, left %v", err, list(t, c))
	}
}

// lying does what it is asked, and reports a failure for one entry.
type lying struct {
	*pnet.Client
	about pnet.Entry
}

func (l lying) Add(ctx context.Context, e pnet.Entry) error {
	if err := l.Client.Add(ctx, e); err != nil {
		return err
	}
	if e == l.about {
		return errors.New("no answer")
	}
	return nil
}

// TestApplyUnknownOutcome has a step that had its effect although it failed.
func TestApplyUnknownOutcome(t *testing.T) {
	from, to := table(t, "A eth e1"), table(t, "A eth e1; A eth e2; B eth e3")
	c := dial(t, kernel(from))
	for _, e := range to[1:] {
		err := pnet.Apply(t.Context(), lying{c, e}, pnet.Diff(from, to))
		if err == nil || !list(t, c).Equal(from) {
			t.Errorf("%v: error %v, left %v", e, err, list(t, c))
		}
	}
}

func TestApplyConcurrently(t *testing.T) {
	from, to := table(t, "A eth e1; A eth e2; B eth e3"), table(t, "A eth e2; B eth e3; C eth e4")
	foreign := pnettest.Eth("X", "x1")
	t.Run("before", func(t *testing.T) {
		k := kernel(from)
		k.Rows = append(k.Rows, foreign)
		c := dial(t, k)
		if err := pnet.Apply(t.Context(), c, pnet.Diff(from, to)); !errors.Is(err, pnet.ErrChanged) || len(k.Log) > 0 {
			t.Errorf("error %v, requests %q", err, k.Log)
		}
	})
	t.Run("meanwhile", func(t *testing.T) {
		k := kernel(from)
		k.Fail = func(n int) syscall.Errno {
			if n == 2 {
				k.Rows = append(k.Rows, foreign)
			}
			return 0
		}
		c := dial(t, k)
		if err := pnet.Apply(t.Context(), c, pnet.Diff(from, to)); !errors.Is(err, pnet.ErrChanged) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("before a rollback", func(t *testing.T) {
		k := kernel(from)
		k.Fail = func(n int) syscall.Errno {
			if n == 2 {
				k.Rows = append(k.Rows, foreign)
			}
			return failAt(3)(n)
		}
		c := dial(t, k)
		err := pnet.Apply(t.Context(), c, pnet.Diff(from, to))
		if want := append(table(t, "A eth e1; A eth e2; B eth e3"), eth("X", "x1")); err == nil || !list(t, c).Equal(want) {
			t.Errorf("error %v, left %v, want %v", err, list(t, c), want)
		}
	})
}
