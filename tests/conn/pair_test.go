// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// Flags that one side can send to the other. They stay set and arrive in this order.
const (
	flagD uint8 = 1 << iota
	flagC
	flagA
)

var flagNames = map[uint8]string{flagD: "D", flagC: "C", flagA: "A"}

// side is one end of a connection.
type side struct {
	state    uint8
	sent     uint8 // flags that it has sent to the other end
	received uint8 // flags that have arrived from the other end
	appDone  bool  // the application has closed its socket
	timer    bool
	gone     bool // its link group is gone
	lost     bool // its link group is gone, and with it the flags that the other end has not received
	ended    bool // it has freed its buffers, which may belong to another connection now
}

// endpoint is an implementation of one side.
type endpoint interface {
	// events returns the events that may happen now, except flags from the other end.
	events(s side) []string
	// fire runs an event. The error names the rule that it breaks.
	fire(s *side, event string) error
	// mayWrite reports whether the side may write data to its peer's buffer.
	mayWrite(s side) bool
	name(state uint8) string
}

// pair is a connection: its two ends. A flag that one end has sent and the other has not received is in flight.
type pair [2]side

// move is an event at one end.
type move struct {
	side     int
	event    string
	received uint8 // the flags that this move delivers
}

// inFlight returns the flags that may still arrive at the side.
func (w pair) inFlight(to int) uint8 {
	from := w[1-to]
	if w[to].ended || w[to].gone || from.lost {
		return 0
	}
	return from.sent &^ w[to].received
}

// search tries every sequence of events of a connection.
type search struct {
	ends [2]endpoint
	// skip leaves events out.
	skip func(event string) bool
	// check looks at each state that is reached. It is quiet if only an application or a failure can cause another event.
	check func(w pair, quiet bool) error
}

// origin is the move that first reached a state of the connection.
type origin struct {
	from pair
	by   move
}

// run returns the number of different states, and the shortest way to one that breaks a rule.
func (s search) run() (int, error) {
	var start pair
	reached := map[pair]origin{start: {}}
	for queue := []pair{start}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if err := s.check(w, w.quiet()); err != nil {
			return len(reached), errors.Join(err, errors.New(s.trace(reached, w)))
		}
		for _, m := range s.moves(w) {
			next := w
			next[m.side].received |= m.received
			if err := s.ends[m.side].fire(&next[m.side], m.event); err != nil {
				return len(reached), fmt.Errorf("%w\n%s%d: %s", err, s.trace(reached, w), m.side, m.event)
			}
			if _, ok := reached[next]; !ok {
				reached[next] = origin{w, m}
				queue = append(queue, next)
			}
		}
	}
	return len(reached), nil
}

func (w pair) quiet() bool {
	return w.inFlight(0) == 0 && w.inFlight(1) == 0 && !w[0].timer && !w[1].timer
}

func (s search) moves(w pair) []move {
	var all []move
	for i := range w {
		for _, e := range s.ends[i].events(w[i]) {
			if s.skip == nil || !s.skip(e) {
				all = append(all, move{side: i, event: e})
			}
		}
		if flight := w.inFlight(i); flight != 0 {
			first := uint8(1) << bits.TrailingZeros8(flight)
			all = append(all, move{i, "PEER_" + flagNames[first], first})
			// SMC-D writes one message over another, so that only the last may be seen.
			if last := uint8(1) << (bits.Len8(flight) - 1); last != first {
				all = append(all, move{i, "PEER_" + flagNames[last], flight})
			}
		}
	}
	return all
}

// trace lists the moves that led to a state.
func (s search) trace(reached map[pair]origin, w pair) string {
	var lines []string
	for w != (pair{}) {
		a := reached[w]
		lines = append(lines, fmt.Sprintf("%d: %-8s %-8s %s\n", a.by.side, a.by.event,
			s.ends[0].name(w[0].state), s.ends[1].name(w[1].state)))
		w = a.from
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}
