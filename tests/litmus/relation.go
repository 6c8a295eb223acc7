// SPDX-License-Identifier: Apache-2.0

package litmus

import "math/bits"

// most is how many events an execution may have.
const most = 64

// set is a set of events, by their numbers.
type set uint64

func (s set) has(e int) bool { return s>>e&1 != 0 }

// relation has a row for each event: the events that it is related to.
type relation []set

func newRelation(n int) relation { return make(relation, n) }

// build makes a relation of n events from a condition.
func build(n int, holds func(a, b int) bool) relation {
	r := newRelation(n)
	for a := range n {
		for b := range n {
			if holds(a, b) {
				r[a] |= 1 << b
			}
		}
	}
	return r
}

// or is the union.
func (r relation) or(others ...relation) relation {
	out := append(relation(nil), r...)
	for _, o := range others {
		for a := range out {
			out[a] |= o[a]
		}
	}
	return out
}

// and is the intersection.
func (r relation) and(o relation) relation {
	out := append(relation(nil), r...)
	for a := range out {
		out[a] &= o[a]
	}
	return out
}

// then is the composition: from a to c if r leads from a to some b, and o from b to c.
func (r relation) then(o relation) relation {
	out := newRelation(len(r))
	for a, row := range r {
		for s := row; s != 0; s &= s - 1 {
			out[a] |= o[bits.TrailingZeros64(uint64(s))]
		}
	}
	return out
}

// inverse leads back.
func (r relation) inverse() relation {
	return build(len(r), func(a, b int) bool { return r[b].has(a) })
}

// maybe adds that each event is related to itself.
func (r relation) maybe() relation {
	out := append(relation(nil), r...)
	for a := range out {
		out[a] |= 1 << a
	}
	return out
}

// withoutIdentity has no event related to itself.
func (r relation) withoutIdentity() relation {
	out := append(relation(nil), r...)
	for a := range out {
		out[a] &^= 1 << a
	}
	return out
}

// transitive is the transitive closure.
func (r relation) transitive() relation {
	out := append(relation(nil), r...)
	for b := range out {
		for a := range out {
			if out[a].has(b) {
				out[a] |= out[b]
			}
		}
	}
	return out
}

// acyclic reports whether the relation leads from no event back to it.
func (r relation) acyclic() bool {
	for a, row := range r.transitive() {
		if row.has(a) {
			return false
		}
	}
	return true
}

// empty reports whether no events are related.
func (r relation) empty() bool {
	for _, row := range r {
		if row != 0 {
			return false
		}
	}
	return true
}

// from restricts the relation to events of a set on its left side, to on its right side.
func (r relation) from(s set) relation {
	out := append(relation(nil), r...)
	for a := range out {
		if !s.has(a) {
			out[a] = 0
		}
	}
	return out
}

func (r relation) to(s set) relation {
	out := append(relation(nil), r...)
	for a := range out {
		out[a] &= s
	}
	return out
}
