// SPDX-License-Identifier: Apache-2.0

package conn

import "slices"

// stock is an end as Linux's own module implements it: states, and what it says, as observed from outside. It has no
// timer for peers that do not answer, and its states do not tell what has been said: said and seen do.
type stock struct{}

const (
	stockActive uint8 = iota
	stockPeerWait1
	stockPeerWait2
	stockAppWait1
	stockAppWait2
	stockAppFin
	stockPeerFin
	stockAbort
	stockClosed
)

func (stock) name(state uint8) string {
	return []string{
		"active", "peerw1", "peerw2", "appw1", "appw2", "appfin", "peerfin", "abort", "closed",
	}[state]
}

// mayWrite: after C or A from the peer, sending fails.
func (stock) mayWrite(s side) bool {
	return !s.appDone && s.seen&(sayC|sayA) == 0 && (s.state == stockActive || s.state == stockAppWait1)
}

func (stock) events(s side) []string {
	var all []string
	if !s.appDone {
		all = append(all, "SHUT", "CLOSE", "CLOSE_UNREAD")
	}
	// An answer to an abort rides on whatever is sent next, such as a consumer's cursor.
	if s.seen&sayA != 0 && s.said&sayA == 0 && s.state != stockClosed {
		all = append(all, "UPDATE")
	}
	if !s.gone {
		all = append(all, "GONE")
	}
	return all
}

func (k stock) fire(s *side, event string) error {
	switch event {
	case "SHUT":
		k.shut(s)
	case "CLOSE":
		k.close(s, sayC)
	case "CLOSE_UNREAD":
		k.close(s, sayA)
	case "UPDATE":
		k.say(s, sayA)
	case "GONE":
		if s.state != stockClosed {
			k.say(s, sayA)
		}
		s.gone, s.state = true, stockClosed
	case "PEER_D", "PEER_C":
		k.heard(s, event == "PEER_C")
	case "PEER_A":
		k.aborted(s)
	}
	s.ended = s.state == stockClosed && s.appDone
	return nil
}

func (stock) say(s *side, flag uint8) {
	if s.seen&sayA != 0 {
		flag |= sayA
	}
	s.said |= flag
}

func (k stock) shut(s *side) {
	next := map[uint8]uint8{stockActive: stockPeerWait1, stockAppWait1: stockAppWait2}
	if to, ok := next[s.state]; ok {
		k.say(s, sayD)
		s.state = to
	}
}

// close says C, or A if there is data that nobody has read.
func (k stock) close(s *side, flag uint8) {
	s.appDone = true
	switch s.state {
	case stockActive:
		k.say(s, flag)
		s.state = stockPeerWait1
	case stockPeerWait1, stockPeerWait2:
		k.sayOnce(s, flag)
	case stockAppWait1, stockAppWait2:
		k.say(s, flag)
		s.state = stockPeerFin
		if s.seen&(sayC|sayA) != 0 {
			s.state = stockClosed
		}
	case stockAppFin:
		k.sayOnce(s, flag)
		s.state = stockClosed
	case stockAbort:
		k.say(s, sayA)
		s.state = stockClosed
	}
}

func (k stock) sayOnce(s *side, flag uint8) {
	if s.said&(sayC|sayA) == 0 {
		k.say(s, flag)
	}
}

// heard is the peer's D or C.
func (stock) heard(s *side, closed bool) {
	switch s.state {
	case stockActive:
		s.state = stockAppWait1
	case stockPeerWait1, stockPeerWait2:
		switch {
		case !closed:
			s.state = stockPeerWait2
		case s.appDone && s.said&(sayC|sayA) != 0:
			s.state = stockClosed
		default:
			s.state = stockAppFin
		}
	case stockPeerFin:
		if closed {
			s.state = stockClosed
		}
	}
}

func (stock) aborted(s *side) {
	onlyD := s.said&(sayC|sayA) == 0
	switch {
	case slices.Contains([]uint8{stockActive, stockAppWait1, stockAppFin}, s.state):
		s.state = stockAbort
	case onlyD && (s.state == stockPeerWait1 || s.state == stockPeerWait2):
		s.state = stockAbort
	case s.state != stockAbort:
		s.state = stockClosed
	}
}
