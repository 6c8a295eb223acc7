// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conn

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// The configurations of failover.pml; its head explains the parameters. "returned" and "returnedFull" have connections that lose a
// second link, as when they return to a link that has come back.
var (
	switched     = []string{"N=2", "SND=2", "TOTAL=3", "LAST=1", "QUEUE=2"}
	switchedShut = []string{"N=2", "SND=2", "TOTAL=2", "LAST=1", "QUEUE=2", "SHUTS"}
	stray        = []string{"N=2", "SND=2", "TOTAL=3", "LAST=1", "QUEUE=2", "STRAY"}
	reused       = []string{"N=2", "SND=2", "TOTAL=2", "LAST=1", "QUEUE=2", "STRAY", "REUSE"}
	smallRing    = []string{"N=2", "SND=1", "TOTAL=3", "LAST=1", "QUEUE=2", "LOSES"}
	urgentByte   = []string{"N=2", "SND=2", "TOTAL=2", "LAST=1", "QUEUE=2", "URGENT", "LOSES"}
	immediate    = []string{"N=2", "SND=2", "TOTAL=3", "LAST=1", "QUEUE=2", "IMM", "LOSES"}
	returned     = []string{"N=2", "SND=2", "TOTAL=1", "LAST=2", "QUEUE=1", "IMM", "LOSES"}
	returnedFull = []string{"N=1", "SND=1", "TOTAL=2", "LAST=2", "QUEUE=1", "IMM"}
)

// Findings of the verifier in failover.pml.
const (
	wrongByte  = "assertion violated (ring[(pos%2)]==(pos+1))"
	wrongReset = "assertion violated lost"
)

// searchFailover returns what the verifier prints about a configuration of failover.pml, in which it should find something if
// anything is added to it. Then to optimise the program would take longer than it saves.
func searchFailover(t *testing.T, defines []string, added ...string) string {
	t.Helper()
	dir, optimise := t.TempDir(), "-O1"
	if len(added) > 0 {
		optimise = "-O0"
	}
	build(t, dir, "failover.pml", append(added, defines...), optimise, "-DSAFETY")
	return run(t, dir, "./pan", "-m20000", "-n")
}

// TestFailover makes spin search every interleaving of writing, reading, closing and the loss of links.
func TestFailover(t *testing.T) {
	for name, defines := range map[string][]string{
		"switched": switched, "switched, shut down": switchedShut, "stray": stray, "reused": reused, "small ring": smallRing, "urgent byte": urgentByte,
		"immediate": immediate, "returned": returned, "returned, full ring": returnedFull,
	} {
		t.Run(name, func(t *testing.T) { complete(t, searchFailover(t, defines)) })
	}
}

// TestFailoverReaches checks that the search comes to the states that make failover hard.
func TestFailoverReaches(t *testing.T) {
	for _, m := range []struct {
		name    string
		defines []string
		state   string
	}{
		{"the receiver loses the link first", switched, "rx_ended == 1 && tx_link == 0 && written > cons"},
		{"the last message is lost", switched, "tx_down && flags_sent && !rx_flags && len(cq[0]) == 0"},
		{"the validation overtakes messages", switched, "rx_link == 1 && need[1] && len(cq[0]) == 2"},
		{"what was taken back is read", switched, "tx_link == 1 && cons > prod"},
		{"a message is late", switched, "rx_link == 1 && rx_seq == 2 && len(cq[0])"},
		{"data is limited", stray, "limit && written > limit && pos && rx_down == 0"},
		{"data is late", stray, "stray_from < stray_to && tx_link == 1 && rx_prod && rx_down == 0"},
		{"an RMB waits for data that is late", reused, "closed && !reused && stray_from < stray_to && rx_down == 0 && pos == 2"},
		{"an RMB waits after a repeated last message", reused, "closed && !reused && ended && (rx_flags & FLAG_A) && rx_down == 0"},
		{"an RMB is used again", reused, "reused && tx_link == 1"},
		{"a message is held", immediate, "held && pos < held_prod"},
		{"nothing is lost that matters", immediate, "over && lost && pos == 3"},
		{"a reset", immediate, "over && lost && pos < written"},
		{"immediate data by the new link", immediate, "tx_link == 1 && wire?[IMMEDIATE, 2, 3, _, _]"},
		{"a repeated write's place is used again", smallRing, "tx_link == 1 && wire?[MESSAGE, 0, 1, _, _] && written == 2"},
		{"two links' messages are awaited", returned, "need[1] && need[2] && rx_ended == 0"},
	} {
		t.Run(m.name, func(t *testing.T) {
			finds(t, searchFailover(t, m.defines, "REACH='("+m.state+")'"), "end state in claim reached")
		})
	}
}

// TestFailoverMutations checks that spin finds each mistake that failover.pml has by name, for the right reason.
func TestFailoverMutations(t *testing.T) {
	known := map[string]bool{}
	for i, m := range []struct {
		name    string
		defines []string
		finding string
	}{
		{"W_JUDGES_AT_ONCE", switched, wrongReset},
		{"W_READS_WHILE_AWAITED", immediate, wrongByte},
		{"W_NEVER_JUDGES", immediate, deadlock},
		{"W_NO_VALIDATION", immediate, wrongByte},
		{"W_MESSAGE_FIRST", immediate, wrongByte},
		{"W_KNOWN_BEHIND_ARRIVED", immediate, wrongByte},
		{"W_NO_REWIND", switched, wrongByte},
		{"W_REWINDS_TO_CONS", smallRing, "assertion violated ((written<=(prod+1))"},
		{"W_MARK_HAS_ARRIVED", switched, wrongReset},
		{"W_MARK_OF_OLD_LINK", returned, wrongReset},
		{"W_NO_CATCH_UP", switched, "assertion violated ((to<=(prod+2))"},
		{"W_CHECKS_REWOUND_END", switched, "assertion violated (cons<=prod)"},
		{"W_NOTHING_NEW", switched, deadlock},
		{"W_CLOSES_BEFORE_DATA", switched, "assertion violated ((pos==written)||"},
		{"W_NUMBERS_AGAIN", switched, deadlock},
		{"W_TAKES_LATE", returned, wrongReset},
		{"W_NO_LIMIT", stray, "assertion violated ((ring[(stray_from%2)]<=pos)"},
		{"W_REUSES_AT_ONCE", reused, "assertion violated  !(reused)"},
		{"W_ENDS_WITHOUT_VALIDATION", reused, "assertion violated  !(reused)"},
		{"W_IMMEDIATE_IN_RESYNC", immediate, wrongByte},
		{"W_CLEARS_RESYNC_EARLY", immediate, wrongByte},
		{"W_IMMEDIATE_BY_OLD_LINK", immediate, wrongByte},
		{"W_URGENT_ONCE", urgentByte, "assertion violated (rx_urgent||"},
		{"W_AWAITS_LINK_BEFORE_ONLY", returned, wrongReset},
		{"W_FORGETS_IMMEDIATE", returned, wrongReset},
	} {
		known[m.name] = true
		// Each search takes seconds, most of them to compile the verifier: short runs have every third.
		if i%3 != 0 && !lab.Full() {
			continue
		}
		t.Run(m.name, func(t *testing.T) { finds(t, searchFailover(t, m.defines, m.name), m.finding) })
	}
	allKnown(t, "failover.pml", known)
}
