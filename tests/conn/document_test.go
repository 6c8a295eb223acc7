// SPDX-License-Identifier: Apache-2.0

package conn

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/closing.md")

const document = "../../docs/closing.md"

// preface explains the table. Tests of this package check its claims.
const preface = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# How connections end

` + "`go test ./tests/conn -update`" + ` draws this page from ` + "`kernel/conn/close_table.h`" + `, and the test checks that it is current.

Each end runs this table. What an end sends about closing stays set and arrives in order: D (done writing), C (closed), A (abort).
After C or A an end sends nothing and writes nothing more, with one exception: it sends A if the peer has not answered its C in
time.

Tests go through all connections of two ends that run this table, and of one such end and one that behaves as Linux's own module,
with every delay and failure. They show:

* An end releases its buffer (END) once, and never while the peer may write to it: the peer has sent C or A; or the timer has
  expired and A is on its way; or the link group is gone.
* An end sends nothing twice, out of order, after END, or to a link group that is gone. After END nothing arrives from a peer that
  has sent C or A, except the A after a C that was not answered in time.
* When both applications have closed, both ends reach CLOSED. Between two ends with this module that takes no timer unless
  something fails. With Linux's own module as the peer it takes the timer in one case: both have shut down, then this end aborts, and
  the peer closes without sending anything.
* An end whose application has closed always has a timer that ends it. Linux's own module has none: it may wait for ever for a peer
  that is gone.
* A reader sees the end of the stream when the peer has announced it, and not otherwise. If a connection breaks, the application
  gets an error, unless the peer had closed: then it looks as with TCP.

An end of SMC-R whose link is lost sends its flags again by another link, all in one message, and writes again what may be lost,
even after C or A ([protocol.md](protocol.md#94-failover-validation)). The table does not see that: a flag is an event only when it
comes first, and D comes before C, and C before A. But the peer may have released its buffer meanwhile. So an end that has sent C or
A writes nothing again once it learns that the peer has given that buffer to another connection, or deletes it
(` + "`kernel/transport/rdma/rtoken.c`" + `).

## Rules for the code that moves bytes

` + "`tests/conn/stream.pml`" + ` has spin check a ring, a writer, a reader, and this table at both ends. It shows that each of these
rules is needed:

* A step runs while no call of the application copies data: the lock of the socket keeps them apart. An end that has sent C or A
  must not be in the middle of a write.
* A writer stores data, then the producer cursor, then flags. A reader loads the flags, then the cursor. D or C is the end of the
  stream; A is not, because the step reports the error.
* A reader copies data out, then advances the consumer cursor. In a state that is over the cursor stays: the peer may use its
  memory for another connection.
* A thread that goes to sleep announces it, and checks again after a full barrier. A thread that publishes a cursor checks for
  sleepers after a full barrier.

` + "`tests/conn/failover.pml`" + ` has spin check one direction of a connection of SMC-R whose links are lost at either end, while
it is written, read and closed, and packets of a lost link are late, so that none of them gets into the RMB of the next connection.
`

// orderly are the events of a connection that nothing happens to.
var orderly = []string{"SHUT", "CLOSE", "PEER_D", "PEER_C"}

// describeDocument draws everything.
func (tb *table) describeDocument() string {
	var b strings.Builder
	b.WriteString(preface)
	b.WriteString("\n## Orderly\n\n")
	tb.draw(&b, func(e string) bool { return slices.Contains(orderly, e) })
	b.WriteString("\n## Broken\n\n")
	tb.draw(&b, func(e string) bool { return !slices.Contains(orderly, e) })
	b.WriteString("\n## States\n\nThe code is what user space sees.\n\n")
	b.WriteString("| state | code | meaning | may write | reader's end | data sent is lost | over |\n|---|---|---|---|---|---|---|\n")
	mark := map[bool]string{true: "yes"}
	for i, s := range tb.states {
		m := tb.meanings[i]
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n", s.name, m.code, s.comment,
			mark[!m.shut], mark[m.eof], mark[m.deaf], mark[m.over])
	}
	b.WriteString("\n## Events\n\n| event | meaning |\n|---|---|\n")
	for _, e := range tb.events {
		fmt.Fprintf(&b, "| %s | %s |\n", e.name, e.explain())
	}
	b.WriteString("\n## Actions\n\nIn this order.\n\n| action | meaning |\n|---|---|\n")
	for _, a := range tb.actions {
		fmt.Fprintf(&b, "| %s | %s |\n", a.name, a.explain())
	}
	return b.String()
}

// explain returns the comment. Where several names of the header share one comment, it derives the text from the name.
func (n named) explain() string {
	shared := []struct{ prefix, text string }{
		{"PEER_", "the peer has sent "},
		{"SEND_", "send the peer "},
		{"ERR_PIPE", "the application gets EPIPE"},
		{"ERR_", "the application gets ECONN"},
	}
	for _, s := range shared {
		if rest, ok := strings.CutPrefix(n.name, s.prefix); ok {
			return s.text + rest
		}
	}
	return n.comment
}

// draw makes a diagram of some events, one arrow for each pair of states.
func (tb *table) draw(b *strings.Builder, wanted func(event string) bool) {
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	for s, row := range tb.steps {
		labels := make([][]string, len(tb.states))
		for e, st := range row {
			if !st.valid || !wanted(tb.events[e].name) {
				continue
			}
			label := tb.events[e].name
			if does := strings.Fields(tb.describe(st))[1:]; len(does) > 0 {
				label += " / " + strings.Join(does, " ")
			}
			labels[st.next] = append(labels[st.next], label)
		}
		for next, l := range labels {
			if len(l) > 0 {
				fmt.Fprintf(b, "    %s --> %s: %s\n", tb.states[s].name, tb.states[next].name, strings.Join(l, "\\n"))
			}
		}
	}
	b.WriteString("```\n")
}

// TestDocument checks that the document is drawn from the table as it is.
func TestDocument(t *testing.T) {
	tb := load(t)
	want := tb.describeDocument()
	if *update {
		if err := os.WriteFile(document, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(document)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what 'go test ./tests/conn -update' writes (%v)", document, err)
	}
	for _, list := range [][]named{tb.states, tb.events, tb.actions} {
		for _, n := range list {
			if n.explain() == "" {
				t.Errorf("%s has no comment to explain it", n.name)
			}
		}
	}
}
