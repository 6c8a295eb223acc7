// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
)

// What one side can say to the other. It stays said, and arrives in this order.
const (
	sayD uint8 = 1 << iota
	sayC
	sayA
)

var flagNames = map[uint8]string{sayD: "D", sayC: "C", sayA: "A"}

// side is one end of a connection.
type side struct {
	state   uint8
	said    uint8 // what it has told the other end
	seen    uint8 // what has arrived from the other end
	appDone bool  // the application has closed its socket
	timer   bool
	gone    bool // its link group is gone
	lost    bool // ... and with it what it has said and the other end has not seen
	ended   bool // its buffers are given back, and may be another connection's now
}

// endpoint is the rules by which a side lives.
type endpoint interface {
	// events returns what may happen now, the other end's messages aside.
	events(s side) []string
	// fire has something happen. The error says which promise that breaks.
	fire(s *side, event string) error
	// mayWrite tells whether the side may write data to its peer's buffer.
	mayWrite(s side) bool
	name(state uint8) string
}

// world is a connection: two ends, and what one has said and the other not seen is on its way.
type world [2]side

// move is something that happens to one end.
type move struct {
	side  int
	event string
	seen  uint8 // the messages that this move delivers
}

// inFlight returns what may still arrive at the side.
func (w world) inFlight(to int) uint8 {
	from := w[1-to]
	if w[to].ended || w[to].gone || from.lost {
		return 0
	}
	return from.said &^ w[to].seen
}

// search goes through everything that can happen to a connection.
type search struct {
	ends [2]endpoint
	// skip leaves events out.
	skip func(event string) bool
	// check looks at each connection that is reached; quiet tells that nothing happens any more unless an application
	// or a failure makes it.
	check func(w world, quiet bool) error
}

// arrival is how a connection was first reached.
type arrival struct {
	from world
	by   move
}

// run returns how many different connections there are, and the shortest way to one that breaks a promise.
func (s search) run() (int, error) {
	var start world
	reached := map[world]arrival{start: {}}
	for queue := []world{start}; len(queue) > 0; queue = queue[1:] {
		w := queue[0]
		if err := s.check(w, w.quiet()); err != nil {
			return len(reached), errors.Join(err, errors.New(s.trace(reached, w)))
		}
		for _, m := range s.moves(w) {
			next := w
			next[m.side].seen |= m.seen
			if err := s.ends[m.side].fire(&next[m.side], m.event); err != nil {
				return len(reached), fmt.Errorf("%w\n%s%d: %s", err, s.trace(reached, w), m.side, m.event)
			}
			if _, ok := reached[next]; !ok {
				reached[next] = arrival{w, m}
				queue = append(queue, next)
			}
		}
	}
	return len(reached), nil
}

func (w world) quiet() bool {
	return w.inFlight(0) == 0 && w.inFlight(1) == 0 && !w[0].timer && !w[1].timer
}

func (s search) moves(w world) []move {
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

// trace tells how a connection was reached.
func (s search) trace(reached map[world]arrival, w world) string {
	var lines []string
	for w != (world{}) {
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
