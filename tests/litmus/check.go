// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// possible reports whether the outcome of a test may be.
func (t *test) possible() (found bool, err error) {
	defer t.recoverSyntax(&err)
	t.combine(t.threadTraces(), nil, func(chosen []trace) bool {
		found, err = t.observed(chosen)
		return !found && err == nil
	})
	return found, err
}

// combine calls f with each choice of one trace for each thread, until it returns false.
func (t *test) combine(threads [][]trace, chosen []trace, f func([]trace) bool) bool {
	if len(threads) == 0 {
		return f(chosen)
	}
	for _, tr := range threads[0] {
		if !t.combine(threads[1:], append(chosen[:len(chosen):len(chosen)], tr), f) {
			return false
		}
	}
	return true
}

// assemble puts the events of threads behind the initial values of all places.
func assemble(chosen []trace) []event {
	locs := make(map[string]bool)
	for _, tr := range chosen {
		for _, e := range tr.events {
			if e.loc != "" {
				locs[e.loc] = true
			}
		}
	}
	var all []event
	for _, loc := range slices.Sorted(maps.Keys(locs)) {
		all = append(all, event{thread: -1, kind: write, loc: loc})
	}
	for _, tr := range chosen {
		base := len(all)
		for _, e := range tr.events {
			e.data, e.ctrl = e.data<<base, e.ctrl<<base
			if e.rmw > 0 {
				e.rmw += base
			}
			all = append(all, e)
		}
	}
	return all
}

// observed reports whether the threads may do what was chosen, so that the outcome holds.
func (t *test) observed(chosen []trace) (bool, error) {
	holds := func(final map[string]int) bool {
		return t.exists.eval(func(name string) int {
			if thread, register, ok := strings.Cut(name, ":"); ok {
				return chosen[int(thread[0]-'0')].registers[register]
			}
			return final[name]
		}) != 0
	}
	if !t.exists.namesPlace() && !holds(nil) {
		return false, nil
	}
	events := assemble(chosen)
	if len(events) > most {
		return false, fmt.Errorf("%s has more than %d events", t.name, most)
	}
	c := &candidate{events: events, rf: newRelation(len(events)), co: newRelation(len(events))}
	return c.readsFrom(0, func() bool {
		return c.orders(c.writes(), func(final map[string]int) bool { return holds(final) && c.allowed() })
	}), nil
}

// namesPlace reports whether an outcome is about what a place has in the end.
func (e expr) namesPlace() bool {
	return e.name != "" && !strings.Contains(e.name, ":") || slices.ContainsFunc(e.args, expr.namesPlace)
}

// readsFrom chooses a write for each read from an event on, until f returns true.
func (c *candidate) readsFrom(from int, f func() bool) bool {
	for from < len(c.events) && c.events[from].kind&read == 0 {
		from++
	}
	if from == len(c.events) {
		return f()
	}
	for i, w := range c.events {
		if w.kind&write == 0 || w.loc != c.events[from].loc || w.value != c.events[from].value || w.rmw == from+1 {
			continue
		}
		c.rf[i] |= 1 << from
		if c.readsFrom(from+1, f) {
			return true
		}
		c.rf[i] &^= 1 << from
	}
	return false
}

// writes returns the writes to each place, the initial one first.
func (c *candidate) writes() map[string][]int {
	all := make(map[string][]int)
	for i, e := range c.events {
		if e.kind&write != 0 {
			all[e.loc] = append(all[e.loc], i)
		}
	}
	return all
}

// orders chooses an order of the writes to each place, until f, which gets the last values, returns true.
func (c *candidate) orders(writes map[string][]int, f func(final map[string]int) bool) bool {
	locs := slices.Sorted(maps.Keys(writes))
	final := make(map[string]int)
	var next func(i int) bool
	next = func(i int) bool {
		if i == len(locs) {
			return f(final)
		}
		return permute(writes[locs[i]], 1, func(order []int) bool {
			for j, a := range order {
				c.co[a] = 0
				for _, b := range order[j+1:] {
					c.co[a] |= 1 << b
				}
			}
			final[locs[i]] = c.events[order[len(order)-1]].value
			return next(i + 1)
		})
	}
	return next(0)
}

// permute calls f with each order of the elements from an index on, until it returns true.
func permute(all []int, from int, f func([]int) bool) bool {
	if from >= len(all)-1 {
		return f(all)
	}
	for i := from; i < len(all); i++ {
		order := slices.Clone(all)
		order[from], order[i] = order[i], order[from]
		if permute(order, from+1, f) {
			return true
		}
	}
	return false
}

// weaker is what a call becomes without its barrier; nothing is left of one that is empty here.
var weaker = map[string]string{
	"smp_mb": "", "smp_rmb": "", "smp_wmb": "", "smp_mb__before_atomic": "", "smp_mb__after_atomic": "", "smp_mb__after_spinlock": "",
	"smp_load_acquire": "READ_ONCE", "smp_store_release": "WRITE_ONCE", "smp_store_mb": "WRITE_ONCE",
	"atomic_read_acquire": "atomic_read", "atomic_inc_return": "atomic_inc_return_relaxed",
	"atomic_sub_return": "atomic_sub_return_relaxed", "xchg": "xchg_relaxed",
}

// weakened returns the tests that lack one barrier, by what they lack.
func (t *test) weakened() map[string]*test {
	all := make(map[string]*test)
	for i := range t.threads {
		for n := 0; ; n++ {
			c := *t
			c.threads = slices.Clone(t.threads)
			left := n
			var lost string
			c.threads[i], lost = without(t.threads[i], &left)
			if lost == "" {
				break
			}
			all[fmt.Sprintf("P%d without its %s (%d)", i, lost, n+1)] = &c
		}
	}
	return all
}

// without returns statements that lack one barrier, after as many as *skip, and which one that is.
func without(stmts []stmt, skip *int) (out []stmt, lost string) {
	for _, st := range stmts {
		weak, ok := weaker[st.call]
		switch {
		case lost != "":
		case st.isIf:
			if st.then, lost = without(st.then, skip); lost == "" {
				st.or, lost = without(st.or, skip)
			}
		case ok && *skip == 0:
			lost = st.call
			if weak == "" {
				continue
			}
			st.call = weak
		case ok:
			*skip--
		}
		out = append(out, st)
	}
	return out, lost
}
