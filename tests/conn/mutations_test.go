// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"errors"
	"strings"
	"testing"
)

// searches are all of them, by name.
func (tb *table) searches() map[string]search {
	return map[string]search{
		"two of ours": between(tb, false), "two of ours without failures": between(tb, true), "ours and stock": withStock(tb),
	}
}

// all returns the rules that a table breaks, by every test here except the comparison with the list. It counts the searches that
// find something.
func (tb *table) all(found map[string]int) error {
	var broken []error
	for _, b := range tb.entryRules() {
		broken = append(broken, errors.New(b))
	}
	for name, s := range tb.searches() {
		if _, err := s.run(); err != nil {
			broken = append(broken, err)
			found[name]++
		}
	}
	return errors.Join(broken...)
}

// set changes an entry to the next state and the actions, or to none for an event that changes nothing.
func (tb *table) set(s, e, does string) {
	words := strings.Fields(does)
	if len(words) == 0 {
		*tb.at(s, e) = step{}
		return
	}
	st := step{valid: true, next: tb.state(words[0])}
	for _, a := range words[1:] {
		st.actions |= tb.action(a)
	}
	*tb.at(s, e) = st
}

// TestTableMutations checks that each property can fail: tables with one mistake, and the complaint that it must lead to. The
// first three mistakes have been made.
func TestTableMutations(t *testing.T) {
	right := load(t)
	found := map[string]int{}
	for _, m := range []struct{ state, event, does, complaint string }{
		{"ACTIVE", "RESET", "PABORT SEND_A ERR_RESET WAKE", "ends, though the peer has sent neither C nor A"},
		{"PFCW", "PEER_A", "CLOSED SEND_A END", "a message to a buffer that was freed"},
		{"ACW1_C", "ABORT", "CLOSED SEND_A END", "waiters are not woken"},
		{"ACTIVE", "CLOSE", "PCW1_C SEND_C", "without a timer, after close()"},
		{"PAW", "TIMEOUT", "", "without a timer, after close()"},
		{"PCW1_C", "PEER_D", "CLOSED END", "ends, though the peer has sent neither C nor A"},
		{"PCW2_C", "PEER_C", "", "waits for ever"},
		{"PABORT", "CLOSE", "", "without a timer, after close()"},
		{"PCW1_D", "PEER_D", "PCW1_D WAKE", "readers do not see the end"},
		{"ACTIVE", "SHUT", "PCW2_D SEND_D WAKE", "an end that the peer has not announced"},
		{"ACTIVE", "SHUT", "ACTIVE SEND_D", "may write after it has sent D, C or A"},
		{"ACTIVE", "SHUT", "PCW1_D WAKE", "may not write, though the peer expects it"},
		{"ACTIVE", "PEER_C", "ACW1_D WAKE", "may write to a peer that no longer reads"},
		{"ACW1_D", "PEER_C", "", "may write to a peer that no longer reads"},
		{"ACTIVE", "PEER_D", "ACW1_C WAKE", "assumes a close()"},
		{"PCW2_D", "PEER_A", "PABORT SEND_A WAKE", "the application gets no error"},
		{"PCW1_C", "PEER_A", "CLOSED ERR_RESET END", "an error for an application that has closed"},
		{"PCW2_D", "CLOSE", "PCW2_C SEND_D SEND_C TIMER", "sends D after D"},
		{"PAW", "PEER_A", "CLOSED SEND_A END", "sends A after A"},
		{"ACTIVE", "GONE", "PABORT SEND_A ERR_ABORTED WAKE", "although its link group is gone"},
		{"PCW1_D", "PEER_D", "ACTIVE WAKE", "a side that could not send can again"},
		{"ACW2_D", "PEER_A", "PCW1_D SEND_A ERR_RESET WAKE", "the end of the stream is forgotten"},
		{"PAW", "PEER_D", "PCW2_C", "what was over is not"},
		{"PAW", "PEER_C", "CLOSED", "a connection ends when it gets to CLOSED"},
		{"PAW", "TIMEOUT", "CLOSED END TIMER", "a timer outlives the connection"},
		{"CLOSED", "PEER_A", "PABORT", "nothing happens after the end"},
		{"ACTIVE", "PEER_D", "ACW1_D", "waiters are not woken"},
		{"ACTIVE", "LOST", "ACTIVE", "is marked as a change, and is none"},
		{"AFCW", "ABORT", "CLOSED WAKE END", "waits for ever"},
	} {
		t.Run(m.state+" "+m.event+" "+m.does, func(t *testing.T) {
			tb := right.clone()
			tb.set(m.state, m.event, m.does)
			if err := tb.all(found); err == nil || !strings.Contains(err.Error(), m.complaint) {
				t.Errorf("want %q, got: %v", m.complaint, err)
			}
		})
	}
	for _, m := range []struct {
		change    func(paw *meaning)
		complaint string
	}{
		{func(paw *meaning) { paw.shut = false }, "over, but not for senders"},
		{func(paw *meaning) { paw.eof = false }, "over, but not for senders or readers"},
	} {
		tb := right.clone()
		m.change(&tb.meanings[tb.state("PAW")])
		if err := tb.all(found); err == nil || !strings.Contains(err.Error(), m.complaint) {
			t.Errorf("want %q, got: %v", m.complaint, err)
		}
	}
	for name := range right.searches() {
		if found[name] == 0 {
			t.Errorf("the search %q found no mistake at all", name)
		}
	}
}
