// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"slices"
	"strconv"
	"strings"
	"testing"
)

// expected lists each pair of state and event that changes something: state, event, next state, actions. It repeats the table, so
// that no entry changes by accident; the other tests check whether the entries make sense together.
const expected = `
ACTIVE SHUT PCW1_D SEND_D WAKE
ACTIVE CLOSE PCW1_C SEND_C TIMER
ACTIVE ABORT PAW SEND_A WAKE TIMER
ACTIVE PEER_D ACW1_D WAKE
ACTIVE PEER_C ACW1_C WAKE
ACTIVE PEER_A PABORT SEND_A ERR_RESET WAKE
ACTIVE RESET PAW SEND_A ERR_RESET WAKE TIMER
ACTIVE GONE PABORT ERR_ABORTED WAKE
PCW1_D CLOSE PCW1_C SEND_C TIMER
PCW1_D ABORT PAW SEND_A WAKE TIMER
PCW1_D PEER_D PCW2_D WAKE
PCW1_D PEER_C AFCW WAKE
PCW1_D PEER_A PABORT SEND_A ERR_RESET WAKE
PCW1_D RESET PAW SEND_A ERR_RESET WAKE TIMER
PCW1_D GONE PABORT ERR_ABORTED WAKE
PCW1_C ABORT PAW SEND_A WAKE TIMER
PCW1_C PEER_D PCW2_C
PCW1_C PEER_C CLOSED END
PCW1_C PEER_A CLOSED END
PCW1_C GONE CLOSED END
PCW1_C TIMEOUT PAW SEND_A WAKE TIMER
PCW2_D CLOSE PCW2_C SEND_C TIMER
PCW2_D ABORT PAW SEND_A WAKE TIMER
PCW2_D PEER_C AFCW
PCW2_D PEER_A PABORT SEND_A ERR_RESET WAKE
PCW2_D RESET PAW SEND_A ERR_RESET WAKE TIMER
PCW2_D GONE PABORT ERR_ABORTED WAKE
PCW2_C ABORT PAW SEND_A WAKE TIMER
PCW2_C PEER_C CLOSED END
PCW2_C PEER_A CLOSED END
PCW2_C GONE CLOSED END
PCW2_C TIMEOUT PAW SEND_A WAKE TIMER
AFCW CLOSE CLOSED SEND_C END
AFCW ABORT CLOSED SEND_A WAKE END
AFCW PEER_A PABORT SEND_A WAKE
AFCW RESET PABORT SEND_A ERR_RESET WAKE
AFCW GONE PABORT ERR_ABORTED WAKE
ACW1_D SHUT ACW2_D SEND_D WAKE
ACW1_D CLOSE PFCW SEND_C TIMER
ACW1_D ABORT PAW SEND_A WAKE TIMER
ACW1_D PEER_C ACW1_C WAKE
ACW1_D PEER_A PABORT SEND_A ERR_RESET WAKE
ACW1_D RESET PAW SEND_A ERR_RESET WAKE TIMER
ACW1_D GONE PABORT ERR_ABORTED WAKE
ACW1_C SHUT ACW2_C SEND_D WAKE
ACW1_C CLOSE CLOSED SEND_C END
ACW1_C ABORT CLOSED SEND_A WAKE END
ACW1_C LOST PABORT SEND_A ERR_PIPE WAKE
ACW1_C PEER_A PABORT SEND_A WAKE
ACW1_C RESET PABORT SEND_A ERR_RESET WAKE
ACW1_C GONE PABORT ERR_ABORTED WAKE
ACW2_D CLOSE PFCW SEND_C TIMER
ACW2_D ABORT PAW SEND_A WAKE TIMER
ACW2_D PEER_C ACW2_C
ACW2_D PEER_A PABORT SEND_A ERR_RESET WAKE
ACW2_D RESET PAW SEND_A ERR_RESET WAKE TIMER
ACW2_D GONE PABORT ERR_ABORTED WAKE
ACW2_C CLOSE CLOSED SEND_C END
ACW2_C ABORT CLOSED SEND_A WAKE END
ACW2_C PEER_A PABORT SEND_A WAKE
ACW2_C RESET PABORT SEND_A ERR_RESET WAKE
ACW2_C GONE PABORT ERR_ABORTED WAKE
PFCW ABORT PAW SEND_A WAKE TIMER
PFCW PEER_C CLOSED END
PFCW PEER_A CLOSED END
PFCW GONE CLOSED END
PFCW TIMEOUT PAW SEND_A WAKE TIMER
PAW PEER_C CLOSED END
PAW PEER_A CLOSED END
PAW GONE CLOSED END
PAW TIMEOUT CLOSED END
PABORT CLOSE CLOSED END
PABORT ABORT CLOSED END
`

// codes are the numbers of the states in sock_diag, which user space knows from the stock module.
const codes = `ACTIVE 1 PCW1_D 20 PCW1_C 20 PCW2_D 21 PCW2_C 21 AFCW 24 ACW1_D 22 ACW1_C 22 ACW2_D 23 ACW2_C 23 PFCW 25
PAW 26 PABORT 27 CLOSED 7`

// TestTable holds every pair of state and event against the list; one that is not listed must change nothing.
func TestTable(t *testing.T) {
	tb := load(t)
	want := strings.Split(strings.TrimSpace(expected), "\n")
	for s, row := range tb.steps {
		for e, st := range row {
			pair := tb.states[s].name + " " + tb.events[e].name + " "
			i := slices.IndexFunc(want, func(line string) bool { return strings.HasPrefix(line, pair) })
			switch {
			case i < 0 && st != step{}:
				t.Errorf("%sshould change nothing, and does: %s", pair, tb.describe(st))
			case i >= 0 && (!st.valid || pair+tb.describe(st) != want[i]):
				t.Errorf("%s%s (valid: %t), want %s", pair, tb.describe(st), st.valid, want[i])
			}
			if i >= 0 {
				want = slices.Delete(want, i, i+1)
			}
		}
	}
	if len(want) != 0 {
		t.Errorf("no such states or events: %q", want)
	}
}

func TestCodes(t *testing.T) {
	tb := load(t)
	words := strings.Fields(codes)
	if len(words) != 2*len(tb.states) {
		t.Fatalf("%d codes, %d states", len(words)/2, len(tb.states))
	}
	for i := 0; i < len(words); i += 2 {
		if got := tb.meanings[tb.state(words[i])].code; strconv.Itoa(got) != words[i+1] {
			t.Errorf("%s has the code %d, want %s", words[i], got, words[i+1])
		}
	}
}

// entryRules returns the rules that single entries break.
func (tb *table) entryRules() []string {
	var broken []string
	closed := tb.state("CLOSED")
	for s, row := range tb.steps {
		was := tb.meanings[s]
		for e, st := range row {
			if !st.valid {
				continue
			}
			is := tb.meanings[st.next]
			event := tb.events[e].name
			complain := func(wrong bool, what string) {
				if wrong {
					broken = append(broken, tb.states[s].name+" "+event+" -> "+tb.describe(st)+": "+what)
				}
			}
			complain(st.next == s && st.actions == 0, "is marked as a change, and is none")
			complain(was.eof && !is.eof, "the end of the stream is forgotten")
			complain(was.shut && !is.shut, "a side that could not send can again")
			complain(was.over && !is.over, "what was over is not")
			complain((st.next == closed) != tb.does(st, "END"), "a connection ends when it gets to CLOSED")
			complain(s == closed, "nothing happens after the end")
			complain(tb.does(st, "END") && tb.does(st, "TIMER"), "a timer outlives the connection")
			// After close(), no call waits. ABORT may be a disconnect, after which the socket is still open.
			seen := was.eof != is.eof || was.shut != is.shut || was.deaf != is.deaf || was.over != is.over
			attached := tb.attached(s) && event != "CLOSE"
			complain(seen && attached && !tb.does(st, "WAKE"), "waiters are not woken for a change that they can see")
		}
	}
	for s, m := range tb.meanings {
		if m.over && (!m.shut || !m.eof) {
			broken = append(broken, tb.states[s].name+": over, but not for senders or readers")
		}
	}
	return broken
}

// attached reports whether an application may have the socket in this state: it may still close it.
func (tb *table) attached(s int) bool {
	return tb.steps[s][tb.event("CLOSE")].valid
}

func TestEntries(t *testing.T) {
	for _, broken := range load(t).entryRules() {
		t.Error(broken)
	}
}
