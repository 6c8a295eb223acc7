// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"testing"
)

// reuse checks that nobody writes to the buffer of an end that has given it back: not the peer that has said C or A,
// and one that has not only until what tells it to stop arrives, or until it notices that the link is gone.
func reuse(s search, w world, i int) error {
	x, peer := w[i], w[1-i]
	if !x.ended || !s.ends[1-i].mayWrite(peer) {
		return nil
	}
	switch {
	case x.seen&(sayC|sayA) != 0:
		return errors.New("a peer that has said C or A may write to a buffer that is given back")
	case !x.gone && w.inFlight(1-i)&sayA == 0:
		return errors.New("a buffer is given back after a timeout, and nothing tells the peer")
	}
	return nil
}

// silence checks that nothing more is said to an end that has given its buffer back, where SMC-D would write it, once the
// peer has said C or A. What cannot be helped is a peer that says C, waits in vain, and says A.
func silence(w world, i int, late bool) error {
	x, peer := w[i], w[1-i]
	rest := peer.said &^ x.seen
	if x.ended && x.seen&(sayC|sayA) != 0 && rest != 0 && !(late && x.seen&sayC != 0 && rest == sayA) {
		return errors.New("a message to a buffer that is given back, though the peer has said C or A")
	}
	return nil
}

// stuck checks that an end gets to CLOSED if nothing can happen any more and both applications have closed.
func stuck(w world, i int) error {
	if w[0].appDone && w[1].appDone && !w[i].ended {
		return errors.New("waits for ever")
	}
	return nil
}

func failure(event string) bool {
	return event == "TIMEOUT" || event == "GONE" || event == "RESET" || event == "ORPHAN"
}

// between returns the search over all connections of two ends that run the table; healthy ones are those without
// failures, where no timer may be needed: one that is armed does not count.
func between(tb *table, healthy bool) search {
	s := search{ends: [2]endpoint{ours{tb}, ours{tb}}}
	if healthy {
		s.skip = failure
	}
	s.check = func(w world, quiet bool) error {
		quiet = quiet || healthy && w.inFlight(0) == 0 && w.inFlight(1) == 0
		for i := range w {
			if err := errors.Join(reuse(s, w, i), silence(w, i, !healthy)); err != nil {
				return err
			}
			if quiet {
				if err := stuck(w, i); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return s
}

// withStock returns the search over all connections with a peer that runs Linux's own module. That one has no timers:
// it may wait for ever, but only for an end that is gone.
func withStock(tb *table) search {
	s := search{ends: [2]endpoint{ours{tb}, stock{}}}
	s.check = func(w world, quiet bool) error {
		err := errors.Join(reuse(s, w, 0), silence(w, 0, true))
		if err == nil && quiet {
			err = stuck(w, 0)
		}
		if err == nil && quiet && !w[0].gone {
			err = stuck(w, 1)
		}
		return err
	}
	return s
}

// TestStockTimers: without failures, ours needs its timer in one case only. Both have shut down, ours aborts, and stock
// says nothing more when its application closes.
func TestStockTimers(t *testing.T) {
	s := withStock(load(t))
	s.skip = failure
	found := 0
	s.check = func(w world, _ bool) error {
		if w.inFlight(0) != 0 || w.inFlight(1) != 0 || !w[0].appDone || !w[1].appDone || w[0].ended && w[1].ended {
			return nil
		}
		if s.ends[0].name(w[0].state) == "PAW" && w[0].said == sayD|sayA && w[1].ended && w[1].said == sayD {
			found++
			return nil
		}
		return errors.New("needs a timer")
	}
	if _, err := s.run(); err != nil {
		t.Error(err)
	}
	if found == 0 {
		t.Error("nothing needs a timer any more: say so above")
	}
}

func TestReachable(t *testing.T) {
	least := map[string]int{"two of ours": 1000, "two of ours without failures": 100, "ours and stock": 500}
	for name, s := range load(t).searches() {
		t.Run(name, func(t *testing.T) {
			n, err := s.run()
			if err != nil {
				t.Error(err)
			}
			t.Logf("%d connections", n)
			if err == nil && n < least[name] {
				t.Errorf("only %d connections: the search does not search", n)
			}
		})
	}
}
