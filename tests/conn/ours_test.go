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

// events omits the events that an application cannot cause after it has closed its socket. Events of the kernel can happen at
// any time.
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
	case "ORPHAN": // the kernel aborts a connection that no application has any more
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
	silent := s.received&flagC != 0 && event == "PEER_A" // as with TCP: see the table
	if isOver := o.meanings[s.state].over; isOver && !wasOver && !s.appDone && !o.fails(st) && !silent {
		err = errors.Join(err, errors.New("the connection breaks, and the application gets no error"))
	}
	return errors.Join(err, o.holds(*s))
}

func (o ours) fails(st step) bool {
	return o.does(st, "ERR_RESET") || o.does(st, "ERR_ABORTED") || o.does(st, "ERR_PIPE")
}

// act runs the actions of a step in order.
func (o ours) act(s *side, st step, event string, attached bool) error {
	for _, flag := range []uint8{flagD, flagC, flagA} {
		if !o.does(st, "SEND_"+flagNames[flag]) {
			continue
		}
		if s.ended || s.gone {
			return fmt.Errorf("sends %s although its link group is gone", flagNames[flag])
		}
		if s.sent >= flag {
			return fmt.Errorf("sends %s after %s", flagNames[flag], flagNames[1<<(bits.Len8(s.sent)-1)])
		}
		s.sent |= flag
	}
	if o.fails(st) && !attached {
		return errors.New("an error for an application that has closed its socket")
	}
	s.timer = s.timer || o.does(st, "TIMER")
	if o.does(st, "END") {
		if s.ended {
			return errors.New("ends twice")
		}
		if s.received&(flagC|flagA) == 0 && !s.gone && event != "TIMEOUT" {
			return errors.New("ends, though the peer has sent neither C nor A, and no timer has expired")
		}
		s.ended, s.timer = true, false
	}
	return nil
}

// holds checks the rules that an end must keep at all times.
func (o ours) holds(s side) error {
	m := o.meanings[s.state]
	for _, rule := range []struct {
		ok   bool
		what string
	}{
		{!s.appDone || s.ended || s.timer, "waits for the peer without a timer, after close()"},
		{s.received == 0 || m.eof, "the peer will send nothing more, and readers do not see the end"},
		{s.received != 0 || !m.eof || m.over || s.gone, "readers see an end that the peer has not announced"},
		{s.sent == 0 || m.shut, "may write after it has sent D, C or A"},
		{s.sent != 0 || !m.shut || m.over, "may not write, though the peer expects it"},
		{s.received&flagC == 0 || m.shut || m.deaf, "may write to a peer that no longer reads, and does not know"},
		{s.received&flagC != 0 || !m.deaf, "assumes a close() that the peer has not announced"},
		{!s.appDone || m.shut, "the application has closed its socket and may still write"},
		{s.ended == (o.name(s.state) == "CLOSED"), "ended, or CLOSED, but not both"},
	} {
		if !rule.ok {
			return errors.New(rule.what)
		}
	}
	return nil
}
