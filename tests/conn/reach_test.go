// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"testing"
)

// reuse checks that no peer writes to a freed buffer. A peer that has sent neither C nor A may, until the A arrives that stops it,
// or until it notices that the link is gone.
func reuse(s search, w pair, i int) error {
	x, peer := w[i], w[1-i]
	if !x.ended || !s.ends[1-i].mayWrite(peer) {
		return nil
	}
	switch {
	case x.received&(flagC|flagA) != 0:
		return errors.New("a peer that has sent C or A may write to a buffer that was freed")
	case !x.gone && w.inFlight(1-i)&flagA == 0:
		return errors.New("a buffer is freed after a timeout, and no A stops the peer")
	}
	return nil
}

// silence checks that a peer that has sent C or A sends nothing more to an end that has freed its buffer, where SMC-D would write
// it. One case is unavoidable: a peer sends C, waits in vain, and sends A.
func silence(w pair, i int, late bool) error {
	x, peer := w[i], w[1-i]
	rest := peer.sent &^ x.received
	if x.ended && x.received&(flagC|flagA) != 0 && rest != 0 && !(late && x.received&flagC != 0 && rest == flagA) {
		return errors.New("a message to a buffer that was freed, though the peer has sent C or A")
	}
	return nil
}

// stuck checks that an end gets to CLOSED if no event is left and both applications have closed.
func stuck(w pair, i int) error {
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
	s.check = func(w pair, quiet bool) error {
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
	s.check = func(w pair, quiet bool) error {
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

// TestStockTimers checks that without failures our end needs its timer in one case only: both have shut down, ours aborts, and the
// stock end sends nothing more when its application closes.
func TestStockTimers(t *testing.T) {
	s := withStock(load(t))
	s.skip = failure
	found := 0
	s.check = func(w pair, _ bool) error {
		if w.inFlight(0) != 0 || w.inFlight(1) != 0 || !w[0].appDone || !w[1].appDone || w[0].ended && w[1].ended {
			return nil
		}
		if s.ends[0].name(w[0].state) == "PAW" && w[0].sent == flagD|flagA && w[1].ended && w[1].sent == flagD {
			found++
			return nil
		}
		return errors.New("needs a timer")
	}
	if _, err := s.run(); err != nil {
		t.Error(err)
	}
	if found == 0 {
		t.Error("nothing needs a timer any more: correct the comment above")
	}
}

// TestRewriteAfterEnd checks that the table leaves one thing to SMC-R: a peer that changes its link writes again what it has
// written before its C or A, unless it knows that this has arrived. By then, our end may have freed its buffer.
func TestRewriteAfterEnd(t *testing.T) {
	s := between(load(t), false)
	found := 0
	s.check = func(w pair, _ bool) error {
		for i := range w {
			x, peer := w[i], w[1-i]
			if x.ended && !x.gone && !peer.ended && x.received&(flagC|flagA) != 0 && peer.received&(flagC|flagA) == 0 {
				found++
			}
		}
		return nil
	}
	if _, err := s.run(); err != nil {
		t.Error(err)
	}
	if found == 0 {
		t.Error("no end frees its buffer before the peer knows: correct the comment above, and docs/closing.md")
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
				t.Errorf("only %d connections: the search stops too early", n)
			}
		})
	}
}
