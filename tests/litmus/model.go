// SPDX-License-Identifier: Apache-2.0

package litmus

// candidate is an execution that may be or not: the events of all processors, which write each read has got its value from, and in
// which order the writes to a place happened.
type candidate struct {
	events []event
	rf, co relation
}

// allowed decides by the axioms of the Linux kernel memory model (linux-kernel.cat): coherence, atomicity, happens-before and
// propagation. Names of relations are those of the model. All accesses are marked, and there is no RCU.
func (c *candidate) allowed() bool {
	n := len(c.events)
	is := func(k kind) (s set) {
		for i, e := range c.events {
			if e.kind&k != 0 {
				s |= 1 << i
			}
		}
		return s
	}
	sameThread := func(a, b int) bool { return c.events[a].thread >= 0 && c.events[a].thread == c.events[b].thread }
	var (
		po    = build(n, func(a, b int) bool { return sameThread(a, b) && a < b })
		in    = build(n, sameThread)
		out   = build(n, func(a, b int) bool { return !sameThread(a, b) })
		loc   = build(n, func(a, b int) bool { return c.events[a].loc != "" && c.events[a].loc == c.events[b].loc })
		data  = build(n, func(a, b int) bool { return c.events[b].data.has(a) })
		ctrl  = build(n, func(a, b int) bool { return c.events[b].ctrl.has(a) })
		rmw   = build(n, func(a, b int) bool { return c.events[b].kind&write != 0 && c.events[b].rmw == a+1 })
		fr    = c.rf.inverse().then(c.co)
		w     = is(write)
		m     = is(read | write)
		rmws  = is(partOfRMW) &^ is(locks)
		fence = func(k kind) relation { return po.to(is(k)).then(po) }
	)
	coherent := po.and(loc).or(c.rf, c.co, fr).acyclic()
	atomic := rmw.and(fr.and(out).then(c.co.and(out))).empty()
	if !coherent || !atomic {
		return false
	}
	var (
		rfe, rfi  = c.rf.and(out), c.rf.and(in)
		overwrite = c.co.or(fr)

		acqPo  = po.from(is(acquire)).to(m)
		poRel  = po.to(is(release)).from(m)
		unlock = po.to(is(unlocks)).then(po.or(c.rf).to(is(locks) & is(read))).then(po)
		rmb    = fence(rmbFence).from(is(read) &^ is(noReturn)).to(is(read) &^ is(noReturn))
		wmb    = fence(wmbFence).from(w).to(w)
		strong = fence(mbFence).from(m).to(m).or(
			fence(beforeAtomic).from(m).to(rmws).then(po.maybe()).to(m),
			po.maybe().from(m).to(rmws).then(fence(afterAtomic)).to(m),
			po.maybe().from(m).to(is(locks)&w).then(fence(afterSpinlock)).to(m))
		fences = strong.or(poRel, acqPo, wmb, rmb)

		toW = data.or(ctrl).to(w).or(overwrite.and(in))
		toR = data.then(rfi)
		ppo = toR.or(toW, fences.and(in), unlock.and(in))

		cumul      = func(r relation) relation { return r.or(rfe.then(r)) }
		sequence   = c.rf.then(rmw).transitive().maybe()
		cumulFence = cumul(strong.or(poRel)).or(wmb, unlock).from(m).to(m).then(sequence)
		prop       = overwrite.and(out).maybe().then(cumulFence.transitive().maybe()).then(rfe.maybe()).from(m).to(m)

		hb = ppo.or(rfe, prop.withoutIdentity().and(in)).from(m).to(m)
		pb = prop.then(strong).then(hb.transitive().maybe()).to(m)
	)
	return hb.acyclic() && pb.acyclic()
}
