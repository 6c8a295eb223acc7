// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcr

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/tests/dissect"
)

// Recorded messages between two hosts with the stock module, of Linux 6.12 and of Linux 7.2, which offer SMC-D, too.
const (
	stockCapture  = "../wire/testdata/smcr-v2-linux-6.12.hex"
	stockCaptureD = "../wire/testdata/smcr-v2-linux-7.2-two-links-setup.hex"
)

// speaker is one of our hosts: its identity, and its settings.
type speaker struct {
	name, mac, gid string // the last two as they are in messages
	offers, agrees bool   // messages as immediate data; offering them goes with large buffers
}

// difference is a part of a message that may differ from what the stock module has sent.
type difference struct {
	messages []string
	from, to int
	why      string
	is       func(speaker) string // what it must be; nil if it cannot be known
}

func mac(s speaker) string { return s.mac }

func gid(s speaker) string { return s.gid }

func eid(speaker) string { return padded(lab.UEID) }

func host(s speaker) string { return padded(s.name) }

func padded(text string) string { return text + strings.Repeat(" ", 32-len(text)) }

func offer(s speaker) string { return option(s.offers) }

// The upper half of the last byte of agreement is the number of receives, 2^5.
func agreement(s speaker) string {
	if s.agrees {
		return "\x02SK\x51"
	}
	return option(false)
}

func size(s speaker) string {
	if s.offers {
		return "\x43"
	}
	return "\x23"
}

func option(said bool) string {
	if said {
		return "\x02SK\x01"
	}
	return "\x00\x00\x00\x00"
}

var (
	syn         = []string{"SYN", "SYN, ACK"}
	proposal    = []string{"Proposal"}
	answer      = []string{"Accept", "Confirm"}
	confirmLink = []string{"Confirm Link (v2)", "Confirm Link (v2)(Resp)"}
	addLink     = []string{"Add Link (v2)", "Add Link (v2)(Resp)"}
	confirmRkey = []string{"Confirm Rkey (v2)", "Confirm Rkey (v2)(Resp)"}
	control     = []string{"CDC Message"}
)

// differences are all that are allowed.
var differences = []difference{
	{syn, 8, 12, "the time", nil},
	{syn[1:], 12, 16, "the peer's time", nil},

	{proposal, 8, 10, "a host's number; stock names no host that offers version 2 alone", nil},
	{proposal, 10, 16, "the other part of its name, as above", mac},
	{proposal, 32, 38, "the address of the port, as above, though servers may send to it", mac},
	{proposal, 52, 56, "our own option", offer},
	{proposal, 88, 104, "address", gid},
	{proposal, 120, 152, "the lab's EID", eid},
	{proposal, 200, 208, "GID of the loopback ISM", nil},
	{proposal, 210, 218, "GID of the loopback ISM", nil},

	{answer, 8, 10, "a host's number", nil},
	{answer, 10, 16, "the other part of its name", mac},
	{answer, 16, 32, "address", gid},
	{answer, 32, 38, "address", mac},
	{answer, 38, 41, "number of the queue pair", nil},
	{answer, 41, 45, "key of the RMB", nil},
	{answer, 46, 50, "token of the connection", nil},
	{answer, 50, 51, "size of the RMB, four times that of stock, and the MTU", size},
	{answer, 52, 60, "address of the RMB", nil},
	{answer, 61, 64, "number of the first packet", nil},
	{answer, 64, 96, "the lab's EID", eid},
	{answer, 108, 140, "name of the host", host},
	{answer, 144, 148, "our own option", agreement},
	{answer[1:], 160, 176, "address", gid},

	{confirmLink, 4, 10, "address", mac},
	{confirmLink, 10, 26, "address", gid},
	{confirmLink, 26, 29, "number of the queue pair", nil},
	{confirmLink, 30, 34, "name of the link", nil},
	{addLink[:1], 4, 10, "address", mac},
	{addLink[:1], 12, 28, "address", gid},
	{addLink[1:], 4, 10, "the address that the offer has", nil},
	{addLink[1:], 12, 28, "the address that the offer has", nil},
	{addLink, 28, 31, "number of the queue pair", nil},
	{addLink, 33, 36, "number of the first packet", nil},
	{addLink[:1], 46, 62, "address", gid},
	{addLink[:1], 72, 76, "key of the RMB", nil},
	{addLink[:1], 76, 80, "key of the RMB on the new link", nil},
	{addLink[:1], 80, 88, "address of the RMB", nil},
	{confirmRkey, 5, 9, "key of the RMB", nil},
	{confirmRkey, 9, 17, "address of the RMB", nil},

	{control, 4, 8, "token of the peer's connection", nil},
}

// stockMessages returns, by name, the messages from first contact to the third connection.
func stockMessages(t *testing.T, file string) map[string][][]byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][][]byte{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if fields[0] == "#" {
			continue
		}
		msg, err := hex.DecodeString(fields[2])
		if err != nil {
			t.Fatal(err)
		}
		kind := map[string]dissect.Kind{"smc": dissect.Option, "clc": dissect.CLC, "llc": dissect.LLC, "cdc": dissect.CDC}[fields[1]]
		name := dissect.Name(kind, msg)
		if kind == dissect.Option {
			// The two take turns.
			name = syn[(len(all[syn[0]])+len(all[syn[1]]))%2]
		}
		if name == syn[0] && len(all[name]) == contacts {
			return all
		}
		all[name] = append(all[name], msg)
	}
	t.Fatalf("%s: no more than %d contacts", file, len(all[syn[0]]))
	return nil
}

// contacts is how many are compared: first contact, and one that joins the group.
const contacts = 2

// likeStock compares the messages of first contacts with those of the stock module.
func (l *life) likeStock(t *testing.T) {
	want := stockMessages(t, stockCapture)
	if l.smcd {
		want["Proposal"] = stockMessages(t, stockCaptureD)["Proposal"]
	}
	seen := map[string]int{}
	for _, m := range l.once() {
		if m.Name == syn[0] && seen[syn[0]] == contacts {
			break
		}
		// The number of these messages depends on the timing of the hosts.
		if m.Kind == dissect.Immediate || strings.HasPrefix(m.Name, "Test Link") || m.Kind == dissect.CDC && l.withImmediate() {
			continue
		}
		i := seen[m.Name]
		seen[m.Name]++
		if i >= len(want[m.Name]) {
			t.Errorf("%s of %s: the %dth, of which stock has %d", m.Name, m.Src, i+1, len(want[m.Name]))
		} else if host := int(m.Src.As4()[3]) - 1; l.hosts[host].module == lab.ModuleOurs {
			for _, d := range diffFromStock(m.Name, m.Bytes, want[m.Name][i], l.speaker(host)) {
				t.Errorf("%s of %s has %s", m.Name, m.Src, d)
			}
		}
	}
	for name, messages := range want {
		if seen[name] != len(messages) && (name != control[0] || !l.withImmediate()) {
			t.Errorf("%s: %d of them, of which stock has %d", name, seen[name], len(messages))
		}
	}
}

// speaker returns a host of ours.
func (l *life) speaker(host int) speaker {
	addr := netip.MustParseAddr(lab.Addr4(0, host))
	s := speaker{name: string(rune('a' + host)), offers: l.immediate, agrees: l.withImmediate()}
	for _, p := range l.capture.Packets {
		const ethernet, source = 14, 12
		if binary.BigEndian.Uint16(p[12:]) == 0x0800 && bytes.Equal(p[ethernet+source:ethernet+source+4], addr.AsSlice()) {
			s.mac = string(p[6:12])
		}
	}
	mapped := netip.AddrFrom16(addr.As16()).As16()
	s.gid = string(mapped[:])
	return s
}

// diffFromStock returns the differences of a message that are not allowed, and allowed ones with a wrong value.
func diffFromStock(name string, msg, stock []byte, s speaker) []string {
	if len(msg) != len(stock) {
		return []string{fmt.Sprintf("%d bytes, not %d:\n% x\n% x", len(msg), len(stock), msg, stock)}
	}
	var all []string
	may := make([]bool, len(stock))
	for _, d := range differencesOf(name, len(stock)) {
		for i := d.from; i < d.to; i++ {
			may[i] = true
		}
		if got := msg[d.from:d.to]; d.is != nil && string(got) != d.is(s) {
			all = append(all, fmt.Sprintf("bytes %d to %d (%s): % x, not % x", d.from, d.to-1, d.why, got, d.is(s)))
		}
	}
	for i, b := range msg {
		if b != stock[i] && !may[i] {
			all = append(all, fmt.Sprintf("byte %d: %02x, not %02x", i, b, stock[i]))
		}
	}
	return all
}

// differencesOf returns the differences of a message of this length: messages that join a group have no extension.
func differencesOf(name string, length int) []difference {
	return slices.DeleteFunc(slices.Clone(differences), func(d difference) bool {
		return !slices.Contains(d.messages, name) || d.to > length
	})
}

// TestDiffFromStock changes each byte of the stock module's messages, after the differences have been applied.
func TestDiffFromStock(t *testing.T) {
	s := speaker{name: "a", mac: "\x52\x54\x00\x00\x01\x00", gid: string(make([]byte, 10)) + "\xff\xff\x0a\x00\x00\x01"}
	used := map[string]bool{}
	for _, file := range []string{stockCapture, stockCaptureD} {
		for name, messages := range stockMessages(t, file) {
			for _, stock := range messages {
				msg, free := slices.Clone(stock), make([]bool, len(stock))
				for _, d := range differencesOf(name, len(stock)) {
					used[d.String()] = true
					if d.is != nil {
						copy(msg[d.from:d.to], d.is(s))
					}
					for i := d.from; i < d.to; i++ {
						free[i] = d.is == nil
					}
				}
				if all := diffFromStock(name, msg, stock, s); all != nil {
					t.Fatalf("%s: %v", name, all)
				}
				for i := range msg {
					msg[i] ^= 0x40
					if all := diffFromStock(name, msg, stock, s); (all == nil) != free[i] {
						t.Errorf("%s with another byte %d: %v", name, i, all)
					}
					msg[i] ^= 0x40
				}
				if diffFromStock(name, msg[:len(msg)-1], stock, s) == nil {
					t.Errorf("%s may be shorter", name)
				}
			}
		}
	}
	for _, d := range differences {
		if !used[d.String()] {
			t.Errorf("stock says nothing that has %s", d)
		}
	}
}

func (d difference) String() string {
	return fmt.Sprintf("%s from byte %d of %q", d.why, d.from, d.messages)
}
