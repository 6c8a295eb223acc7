// SPDX-License-Identifier: Apache-2.0

package conn

import "slices"

// stock is an end that behaves as Linux's own module was observed to. It has no timer for peers that do not answer. Its states do
// not show which flags were sent; sent and received do.
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
	return !s.appDone && s.received&(flagC|flagA) == 0 && (s.state == stockActive || s.state == stockAppWait1)
}

func (stock) events(s side) []string {
	var all []string
	if !s.appDone {
		all = append(all, "SHUT", "CLOSE", "CLOSE_UNREAD")
	}
	// The answer to an abort is part of the next CDC message, such as an update of the consumer cursor.
	if s.received&flagA != 0 && s.sent&flagA == 0 && s.state != stockClosed {
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
		k.close(s, flagC)
	case "CLOSE_UNREAD":
		k.close(s, flagA)
	case "UPDATE":
		k.send(s, flagA)
	case "GONE":
		if s.state != stockClosed {
			k.send(s, flagA)
		}
		s.gone, s.state = true, stockClosed
	case "PEER_D", "PEER_C":
		k.recvDone(s, event == "PEER_C")
	case "PEER_A":
		k.aborted(s)
	}
	s.ended = s.state == stockClosed && s.appDone
	return nil
}

func (stock) send(s *side, flag uint8) {
	if s.received&flagA != 0 {
		flag |= flagA
	}
	s.sent |= flag
}

func (k stock) shut(s *side) {
	next := map[uint8]uint8{stockActive: stockPeerWait1, stockAppWait1: stockAppWait2}
	if to, ok := next[s.state]; ok {
		k.send(s, flagD)
		s.state = to
	}
}

// close sends C, or A if there is unread data.
func (k stock) close(s *side, flag uint8) {
	s.appDone = true
	switch s.state {
	case stockActive:
		k.send(s, flag)
		s.state = stockPeerWait1
	case stockPeerWait1, stockPeerWait2:
		k.sendOnce(s, flag)
	case stockAppWait1, stockAppWait2:
		k.send(s, flag)
		s.state = stockPeerFin
		if s.received&(flagC|flagA) != 0 {
			s.state = stockClosed
		}
	case stockAppFin:
		k.sendOnce(s, flag)
		s.state = stockClosed
	case stockAbort:
		k.send(s, flagA)
		s.state = stockClosed
	}
}

func (k stock) sendOnce(s *side, flag uint8) {
	if s.sent&(flagC|flagA) == 0 {
		k.send(s, flag)
	}
}

// recvDone handles the peer's D or C.
func (stock) recvDone(s *side, closed bool) {
	switch s.state {
	case stockActive:
		s.state = stockAppWait1
	case stockPeerWait1, stockPeerWait2:
		switch {
		case !closed:
			s.state = stockPeerWait2
		case s.appDone && s.sent&(flagC|flagA) != 0:
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
	onlyD := s.sent&(flagC|flagA) == 0
	switch {
	case slices.Contains([]uint8{stockActive, stockAppWait1, stockAppFin}, s.state):
		s.state = stockAbort
	case onlyD && (s.state == stockPeerWait1 || s.state == stockPeerWait2):
		s.state = stockAbort
	case s.state != stockAbort:
		s.state = stockClosed
	}
}
