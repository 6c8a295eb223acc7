// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/dissect"
)

// recording1 has the messages of version 1 between two hosts with our module, as it was at commit e1575b86daf8. The stock module
// has no version 1 over RoCEv2. To record it again, run the test of today with kernel/ of that commit, and -record.
const recording1 = "testdata/smcr-v1.hex"

var record = flag.Bool("record", false, "write "+recording1+" instead of comparing with it")

// differences1 are all that are allowed. In ADD LINK, that commit offered the first link again, because it had no second one: the number
// of its queue pair, no MTU and no number of a packet.
var differences1 = append(ofAnyVersion(""), []difference{
	{proposal, 8, 10, "a host's number", nil},
	{proposal, 10, 16, "the other part of its name", mac},
	{proposal, 16, 32, "address", gid},
	{proposal, 32, 38, "address", mac},

	{llc("Add Link", ""), 32, 33, "MTU, which that commit left empty", mtu},
}...)

// mtu is the one of 1024 bytes, which soft-RoCE has on Ethernet, as it is in messages.
func mtu(speaker) string { return "\x03" }

// version1AsRecorded has two hosts of ours send what they sent before.
func version1AsRecorded(t *testing.T, lt *lab.Test, hosts [2]side) {
	l := &life{hosts: hosts, version1: true}
	l.live(t, lt)
	if *record {
		l.write(t, recording1)
		return
	}
	t.Run("order", l.order)
	t.Run("as recorded", func(t *testing.T) { l.like(t, recorded(t, recording1), differences1) })
}

// write writes a recording.
func (l *life) write(t *testing.T, file string) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Version 1 between two hosts with our module of commit e1575b86daf8: every CLC, LLC and CDC\n" +
		"# message, and the TCP options of every SYN and SYN-ACK, up to the third SYN. A line: frame, what it is, bytes.\n")
	contact := 0
	for _, m := range l.once() {
		if contact > contacts {
			break
		}
		if m.Name == syn[0] {
			contact++
		}
		kind := strings.ToLower(string(m.Kind))
		if m.Kind == dissect.Option {
			kind = "smc"
		}
		fmt.Fprintf(&b, "%d %s %x\n", m.Frame, kind, m.Bytes)
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
