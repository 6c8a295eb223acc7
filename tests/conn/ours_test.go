// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"fmt"
	"math/bits"
)

// ours is an end that runs the closing table.
type ours struct{ *table }

func (o ours) name(state uint8) string { return o.states[state].name }

func (o ours) mayWrite(s side) bool { return !o.meanings[s.state].shut }

// events leaves out what an application cannot do: anything after it has closed its socket. What the kernel finds out
// for itself can come at any time.
func (o ours) events(s side) []string {
	if s.ended {
		return nil
	}
	all := []string{"RESET"}
	if s.appDone {
		all = append(all, "ORPHAN")
	} else {
		all = append(all, "SHUT", "CLOSE", "ABORT")
	}
	if m := o.meanings[s.state]; !s.appDone && m.deaf && !m.shut {
		all = append(all, "LOST")
	}
	if !s.gone {
		all = append(all, "GONE")
	}
	if s.timer {
		all = append(all, "TIMEOUT")
	}
	return all
}

func (o ours) fire(s *side, event string) error {
	switch event {
	case "TIMEOUT":
		s.timer = false
	case "GONE":
		s.gone, s.lost = true, true
	case "ORPHAN": // the kernel gives up what no application has any more
		event = "ABORT"
	}
	attached := !s.appDone
	s.appDone = s.appDone || event == "CLOSE" || event == "ABORT"
	st := o.steps[s.state][o.event(event)]
	if !st.valid {
		return o.holds(*s)
	}
	wasOver := o.meanings[s.state].over
	s.state = uint8(st.next)
	err := o.act(s, st, event, attached)
	silent := s.seen&sayC != 0 && event == "PEER_A" // as with TCP: see the table
	if isOver := o.meanings[s.state].over; isOver && !wasOver && !s.appDone && !o.fails(st) && !silent {
		err = errors.Join(err, errors.New("a connection breaks, and the application gets no error"))
	}
	return errors.Join(err, o.holds(*s))
}

func (o ours) fails(st step) bool {
	return o.does(st, "ERR_RESET") || o.does(st, "ERR_ABORTED") || o.does(st, "ERR_PIPE")
}

// act does what the step says, in order.
func (o ours) act(s *side, st step, event string, attached bool) error {
	for _, flag := range []uint8{sayD, sayC, sayA} {
		if !o.does(st, "SEND_"+flagNames[flag]) {
			continue
		}
		if s.ended || s.gone {
			return fmt.Errorf("says %s, and nobody can hear it", flagNames[flag])
		}
		if s.said >= flag {
			return fmt.Errorf("says %s after %s", flagNames[flag], flagNames[1<<(bits.Len8(s.said)-1)])
		}
		s.said |= flag
	}
	if o.fails(st) && !attached {
		return errors.New("an error for an application that has closed its socket")
	}
	s.timer = s.timer || o.does(st, "TIMER")
	if o.does(st, "END") {
		if s.ended {
			return errors.New("ends twice")
		}
		if s.seen&(sayC|sayA) == 0 && !s.gone && event != "TIMEOUT" {
			return errors.New("ends, though the peer has said neither C nor A, and no time is up")
		}
		s.ended, s.timer = true, false
	}
	return nil
}

// holds checks what is true of an end at all times.
func (o ours) holds(s side) error {
	m := o.meanings[s.state]
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{!s.appDone || s.ended || s.timer, "waits for the peer without a timer, after close()"},
		{s.seen == 0 || m.eof, "the peer will send nothing more, and readers are not told"},
		{s.seen != 0 || !m.eof || m.over || s.gone, "readers are told of an end that the peer has not announced"},
		{s.said == 0 || m.shut, "may write after it has said that it will not"},
		{s.said != 0 || !m.shut || m.over, "may not write, though the peer expects it"},
		{s.seen&sayC == 0 || m.shut || m.deaf, "may write to a peer that reads no more, and does not know"},
		{s.seen&sayC != 0 || !m.deaf, "believes in a close() that the peer has not announced"},
		{!s.appDone || m.shut, "the application has closed its socket and may still write"},
		{s.ended == (o.name(s.state) == "CLOSED"), "ended, or CLOSED, but not both"},
	} {
		if !rule.ok {
			return errors.New(rule.what)
		}
	}
	return nil
}
