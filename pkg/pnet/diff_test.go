// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/pnet"
)

// table parses a table from entries that are separated by semicolons.
func table(t *testing.T, s string) pnet.Table {
	t.Helper()
	var out pnet.Table
	for line := range strings.SplitSeq(s, ";") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		c, err := pnet.ParseArgs(strings.Fields("add " + line))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c.Entry)
	}
	return out
}

// words returns steps in words, separated by semicolons.
func words(steps []pnet.Step) string {
	var out []string
	for _, s := range steps {
		if s.Delete {
			out = append(out, "del "+string(s.Entry.ID))
		} else {
			out = append(out, "add "+s.Entry.String())
		}
	}
	return strings.Join(out, "; ")
}

func TestDiff(t *testing.T) {
	tests := []struct {
		name, from, to string
		steps          string
		added, removed string
	}{
		{name: "both empty"},
		{name: "same", from: "A eth e1; B ib m 2", to: "A eth e1; B ib m 2"},
		{name: "same in another order", from: "A eth e1; B ib m 2", to: "B ib m 2; A eth e1"},
		{name: "fill", to: "A eth e1; B ib m 2", steps: "add A eth e1; add B ib m 2", added: "A eth e1; B ib m 2"},
		{name: "empty", from: "A eth e1; A eth e2; B ib m 2", steps: "del A; del B", removed: "A eth e1; A eth e2; B ib m 2"},
		{name: "add to an ID", from: "A eth e1", to: "A eth e1; A eth e2", steps: "add A eth e2", added: "A eth e2"},
		{
			name: "one of an ID", from: "A eth e1; B eth e4; A eth e2; A ib m 1", to: "A eth e1; A ib m 1; B eth e4",
			steps: "del A; add A eth e1; add A ib m 1", removed: "A eth e2",
		},
		{
			name: "move", from: "A eth e1; A eth e2", to: "A eth e2; B eth e1",
			steps: "del A; add A eth e2; add B eth e1", added: "B eth e1", removed: "A eth e1",
		},
		{
			name: "swap", from: "A eth e1; B eth e2", to: "A eth e2; B eth e1",
			steps: "del A; del B; add A eth e2; add B eth e1", added: "A eth e2; B eth e1", removed: "A eth e1; B eth e2",
		},
		{
			name: "another port", from: "A ib m 1", to: "A ib m 2",
			steps: "del A; add A ib m 2", added: "A ib m 2", removed: "A ib m 1",
		},
		{
			name: "new devices first", from: "A eth e1; A eth e2", to: "A eth e2; A eth e3; B eth e4; B eth e1",
			steps: "add B eth e4; del A; add A eth e2; add A eth e3; add B eth e1",
			added: "A eth e3; B eth e4; B eth e1", removed: "A eth e1",
		},
		{name: "twice", to: "A eth e1; A eth e1", steps: "add A eth e1", added: "A eth e1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			from, to := table(t, tt.from), table(t, tt.to)
			p := pnet.Diff(from, to)
			if diff := cmp.Diff(tt.steps, words(p.Steps)); diff != "" {
				t.Errorf("steps: %s", diff)
			}
			if diff := cmp.Diff(table(t, tt.added), p.Added); diff != "" {
				t.Errorf("added: %s", diff)
			}
			if diff := cmp.Diff(table(t, tt.removed), p.Removed); diff != "" {
				t.Errorf("removed: %s", diff)
			}
			if p.Changed() != (tt.steps != "") {
				t.Errorf("Changed() = %v", p.Changed())
			}
			if !from.Equal(p.From) || !from.Equal(table(t, tt.from)) {
				t.Errorf("the present table was changed: %v", from)
			}
		})
	}
}

// randomTable returns a table with entries for some of ten devices.
func randomTable(r *rand.Rand) pnet.Table {
	var out pnet.Table
	for _, i := range r.Perm(10) {
		id := pnet.ID("ABCD"[r.IntN(4):][:1])
		switch {
		case r.IntN(3) == 0:
		case i < 6:
			out = append(out, eth(id, "e"+string(rune('0'+i))))
		default:
			out = append(out, ib(id, "m"+string(rune('0'+i)), uint8(1+r.IntN(2))))
		}
	}
	return out
}

// TestDiffArrives checks for many pairs of tables that a plan ends in the wanted table, and takes no detour.
func TestDiffArrives(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		from, to := randomTable(r), randomTable(r)
		p := pnet.Diff(from, to)
		if !p.To.Same(to) {
			t.Fatalf("from %v to %v: plan %s ends in %v", from, to, words(p.Steps), p.To)
		}
		if pnet.Diff(p.To, to).Changed() {
			t.Fatalf("from %v to %v: the second plan is not empty", from, to)
		}
		touched := map[pnet.ID]bool{}
		for _, e := range append(append(pnet.Table{}, p.Added...), p.Removed...) {
			touched[e.ID] = true
		}
		for _, s := range p.Steps {
			if !touched[s.Entry.ID] {
				t.Fatalf("from %v to %v: plan %s touches %s needlessly", from, to, words(p.Steps), s.Entry.ID)
			}
		}
	}
}
