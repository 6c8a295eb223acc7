// SPDX-License-Identifier: Apache-2.0

package litmus

import (
	"maps"
	"slices"
	"strings"
)

// kind is what an event is; an access has several.
type kind uint32

const (
	read kind = 1 << iota
	write
	acquire
	release
	noReturn
	partOfRMW
	locks
	unlocks
	mbFence
	rmbFence
	wmbFence
	beforeAtomic
	afterAtomic
	afterSpinlock
)

// event is an access or a fence. Initial values are writes of thread -1.
type event struct {
	thread int
	kind   kind
	loc    string
	value  int
	// rmw is one more than the number of the read that belongs to a write, or 0.
	rmw int
	// data and ctrl are the reads that the value, or whether there is the event, depend on.
	data, ctrl set
}

// trace is what a thread does if its reads return certain values.
type trace struct {
	events    []event
	registers map[string]int
}

// runner runs a thread with all values that its reads may return.
type runner struct {
	values map[string][]int // that each place may have
	traces []trace
}

// state is where a thread is. It is copied where reads return different values.
type state struct {
	events []event
	values map[string]int
	taints map[string]set // the reads that a register depends on
}

func (s *state) clone() *state {
	return &state{events: slices.Clone(s.events), values: maps.Clone(s.values), taints: maps.Clone(s.taints)}
}

func (s *state) lookup(name string) int { return s.values[name] }

// taint returns the reads that an expression depends on.
func (s *state) taint(e expr) (t set) {
	t = s.taints[e.name]
	for _, a := range e.args {
		t |= s.taint(a)
	}
	return t
}

func (s *state) fence(k kind) { s.events = append(s.events, event{kind: k}) }

// run continues with statements, in an arm of if that depends on ctrl, and then calls done.
func (r *runner) run(s *state, stmts []stmt, ctrl set, done func(*state)) {
	if len(stmts) == 0 {
		done(s)
		return
	}
	st, rest := stmts[0], stmts[1:]
	next := func(s *state) { r.run(s, rest, ctrl, done) }
	switch {
	case st.isIf:
		arm := st.or
		if st.value.eval(s.lookup) != 0 {
			arm = st.then
		}
		r.run(s, arm, ctrl|s.taint(st.value), next)
	case st.call == "":
		s.set(st.register, st.value.eval(s.lookup), s.taint(st.value))
		next(s)
	default:
		r.call(s, st, ctrl, next)
	}
}

func (s *state) set(register string, value int, taint set) {
	if register == "" {
		return
	}
	s.values[register], s.taints[register] = value, taint
}

// fences are calls without arguments.
var fences = map[string]kind{
	"smp_mb": mbFence, "smp_rmb": rmbFence, "smp_wmb": wmbFence, "smp_mb__before_atomic": beforeAtomic,
	"smp_mb__after_atomic": afterAtomic, "smp_mb__after_spinlock": afterSpinlock,
}

// loads and stores are calls that only read or write, with the kind of their event besides.
var (
	loads  = map[string]kind{"READ_ONCE": 0, "atomic_read": 0, "smp_load_acquire": acquire, "atomic_read_acquire": acquire}
	stores = map[string]kind{"WRITE_ONCE": 0, "atomic_set": 0, "smp_store_release": release, "smp_store_mb": 0}
)

// call adds the events of a call.
func (r *runner) call(s *state, st stmt, ctrl set, next func(*state)) {
	if k, ok := fences[st.call]; ok {
		s.fence(k)
		next(s)
		return
	}
	if k, ok := loads[st.call]; ok {
		r.read(s, st.register, event{kind: read | k, loc: st.args[0].name, ctrl: ctrl}, next)
		return
	}
	if k, ok := stores[st.call]; ok {
		e := event{kind: write | k, loc: st.args[0].name, value: st.args[1].eval(s.lookup), data: s.taint(st.args[1]), ctrl: ctrl}
		s.events = append(s.events, e)
		if st.call == "smp_store_mb" {
			s.fence(mbFence)
		}
		next(s)
		return
	}
	r.modify(s, st, ctrl, next)
}

// read lets a read return each value that the place may have.
func (r *runner) read(s *state, register string, e event, next func(*state)) {
	for _, v := range r.values[e.loc] {
		c := s.clone()
		e.value = v
		c.events = append(c.events, e)
		c.set(register, v, 1<<(len(c.events)-1))
		next(c)
	}
}

// modify adds the events of a call that reads and writes at once.
func (r *runner) modify(s *state, st stmt, ctrl set, next func(*state)) {
	loc, full, extra := place(st), true, kind(0)
	value := func(_ *state, old int) (v int, writes bool) { panic(syntaxError("no call " + st.call)) }
	arg := func(s *state, i int) int { return st.args[i].eval(s.lookup) }
	switch st.call {
	case "spin_lock":
		full, extra = false, locks
		value = func(_ *state, old int) (int, bool) { return 1, old == 0 }
	case "spin_unlock":
		s.events = append(s.events, event{kind: write | release | unlocks, loc: loc, ctrl: ctrl})
		next(s)
		return
	case "xchg", "xchg_relaxed":
		full = st.call == "xchg"
		value = func(s *state, _ int) (int, bool) { return arg(s, 1), true }
	case "cmpxchg":
		value = func(s *state, old int) (int, bool) { return arg(s, 2), old == arg(s, 1) }
	case "atomic_inc", "atomic_dec":
		full, extra = false, noReturn
		value = func(_ *state, old int) (int, bool) {
			return old + map[string]int{"atomic_inc": 1, "atomic_dec": -1}[st.call], true
		}
	case "atomic_inc_return", "atomic_inc_return_relaxed":
		full = st.call == "atomic_inc_return"
		value = func(_ *state, old int) (int, bool) { return old + 1, true }
	case "atomic_sub_return", "atomic_sub_return_relaxed":
		full = st.call == "atomic_sub_return"
		value = func(s *state, old int) (int, bool) { return old - arg(s, 0), true }
	}
	for _, old := range r.values[loc] {
		c := s.clone()
		v, writes := value(c, old)
		if !writes && extra == locks {
			continue // it waits until another value is there
		}
		c.modifyOnce(st, event{kind: read | write | extra, loc: loc, value: v, ctrl: ctrl}, old, writes, full)
		next(c)
	}
}

// place is the argument of a call that is read or written.
func place(st stmt) string {
	if st.call == "atomic_sub_return" || st.call == "atomic_sub_return_relaxed" {
		return st.args[1].name
	}
	return st.args[0].name
}

// modifyOnce adds a read of an old value, and the write that belongs to it. The result of xchg and cmpxchg is the old value.
func (s *state) modifyOnce(st stmt, e event, old int, writes, full bool) {
	if full && writes {
		s.fence(mbFence)
	}
	r := event{kind: e.kind&^write | partOfRMW, loc: e.loc, value: old, ctrl: e.ctrl}
	if e.kind&locks != 0 {
		r.kind |= acquire
	}
	s.events = append(s.events, r)
	at := len(s.events)
	if writes {
		w := event{kind: e.kind&^(read|noReturn) | partOfRMW, loc: e.loc, value: e.value, ctrl: e.ctrl, rmw: at}
		w.data, w.ctrl = s.dependencies(st, w.ctrl, 1<<(at-1))
		s.events = append(s.events, w)
		if full {
			s.fence(mbFence)
		}
	}
	result := old
	if strings.HasPrefix(st.call, "atomic") {
		result = e.value
	}
	s.set(st.register, result, 1<<(at-1))
}

// dependencies returns what the write of a call that reads and writes depends on, by its value and by whether there is one. Only counters
// make the new value of the old one.
func (s *state) dependencies(st stmt, ctrl, own set) (data, _ set) {
	switch st.call {
	case "xchg", "xchg_relaxed":
		return s.taint(st.args[1]), ctrl | own
	case "cmpxchg":
		return s.taint(st.args[2]), ctrl | own | s.taint(st.args[1])
	}
	for _, a := range st.args {
		data |= s.taint(a)
	}
	return data | own, ctrl
}

// traces returns what a thread may do, if each place may have some values.
func traces(thread int, stmts []stmt, values map[string][]int) []trace {
	r := &runner{values: values}
	r.run(&state{values: map[string]int{}, taints: map[string]set{}}, stmts, 0, func(s *state) {
		for i := range s.events {
			s.events[i].thread = thread
		}
		r.traces = append(r.traces, trace{s.events, s.values})
	})
	return r.traces
}

// places returns the places of a program, each with its initial value, and how many statements may write.
func places(stmts []stmt, values map[string][]int) (writes int) {
	for _, st := range stmts {
		if st.isIf {
			writes += places(st.then, values) + places(st.or, values)
			continue
		}
		if st.call == "" || fences[st.call] != 0 {
			continue
		}
		values[place(st)] = []int{0}
		if _, ok := loads[st.call]; !ok {
			writes++
		}
	}
	return writes
}

// addValues adds what is written to the values that places may have. Return: whether there was a new one.
func addValues(values map[string][]int, events []event) (grown bool) {
	for _, e := range events {
		if e.kind&write != 0 && !slices.Contains(values[e.loc], e.value) {
			values[e.loc] = append(values[e.loc], e.value)
			grown = true
		}
	}
	return grown
}

// threadTraces returns what the threads may do: with the values that there may be at all.
func (t *test) threadTraces() (all [][]trace) {
	values := make(map[string][]int)
	writes := 0
	for _, stmts := range t.threads {
		writes += places(stmts, values)
	}
	grown := true
	for n := 0; grown && n < writes; n++ {
		grown = false
		for i, stmts := range t.threads {
			for _, tr := range traces(i, stmts, values) {
				grown = addValues(values, tr.events) || grown
			}
		}
	}
	// A value that takes more writes than there are cannot be read, so those that have been found are enough.
	for i, stmts := range t.threads {
		all = append(all, traces(i, stmts, values))
	}
	return all
}
