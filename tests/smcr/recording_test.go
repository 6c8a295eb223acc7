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

func (d difference) String() string {
	return fmt.Sprintf("%s from byte %d of %q", d.why, d.from, d.messages)
}

func mac(s speaker) string { return s.mac }

func gid(s speaker) string { return s.gid }

func eid(speaker) string { return padded(lab.UEID) }

func host(s speaker) string { return padded(s.name) }

func padded(text string) string { return text + strings.Repeat(" ", 32-len(text)) }

// recorded returns, by name, the messages of a file from first contact to the third connection.
func recorded(t *testing.T, file string) map[string][][]byte {
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

// like compares the messages of first contacts with those of a recording, by a table of the differences that are allowed.
func (l *life) like(t *testing.T, want map[string][][]byte, allowed []difference) {
	t.Helper()
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
			t.Errorf("%s of %s: the %dth, of which the recording has %d", m.Name, m.Src, i+1, len(want[m.Name]))
		} else if host := int(m.Src.As4()[3]) - 1; l.hosts[host].module == lab.ModuleOurs {
			for _, d := range diff(m.Name, m.Bytes, want[m.Name][i], allowed, l.speaker(host)) {
				t.Errorf("%s of %s has %s", m.Name, m.Src, d)
			}
		}
	}
	for name, messages := range want {
		if seen[name] != len(messages) && (name != control[0] || !l.withImmediate()) {
			t.Errorf("%s: %d of them, of which the recording has %d", name, seen[name], len(messages))
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

// diff returns the differences of a message that are not allowed, and allowed ones with a wrong value.
func diff(name string, msg, old []byte, allowed []difference, s speaker) []string {
	if len(msg) != len(old) {
		return []string{fmt.Sprintf("%d bytes, not %d:\n% x\n% x", len(msg), len(old), msg, old)}
	}
	var all []string
	may := make([]bool, len(old))
	for _, d := range differencesOf(allowed, name, len(old)) {
		for i := d.from; i < d.to; i++ {
			may[i] = true
		}
		if got := msg[d.from:d.to]; d.is != nil && string(got) != d.is(s) {
			all = append(all, fmt.Sprintf("bytes %d to %d (%s): % x, not % x", d.from, d.to-1, d.why, got, d.is(s)))
		}
	}
	for i, b := range msg {
		if b != old[i] && !may[i] {
			all = append(all, fmt.Sprintf("byte %d: %02x, not %02x", i, b, old[i]))
		}
	}
	return all
}

// differencesOf returns the differences of a message of this length: messages that join a group have no extension.
func differencesOf(allowed []difference, name string, length int) []difference {
	return slices.DeleteFunc(slices.Clone(allowed), func(d difference) bool {
		return !slices.Contains(d.messages, name) || d.to > length
	})
}

// TestDiff changes each byte of the recorded messages, after the differences have been applied.
func TestDiff(t *testing.T) {
	t.Run("stock", func(t *testing.T) { eachByte(t, differences, stockCapture, stockCaptureD) })
	t.Run("version 1", func(t *testing.T) { eachByte(t, differences1, recording1) })
}

func eachByte(t *testing.T, allowed []difference, files ...string) {
	t.Helper()
	s := speaker{name: "a", mac: "\x52\x54\x00\x00\x01\x00", gid: string(make([]byte, 10)) + "\xff\xff\x0a\x00\x00\x01"}
	used := map[string]bool{}
	for _, file := range files {
		for name, messages := range recorded(t, file) {
			for _, old := range messages {
				msg, free := slices.Clone(old), make([]bool, len(old))
				for _, d := range differencesOf(allowed, name, len(old)) {
					used[d.String()] = true
					if d.is != nil {
						copy(msg[d.from:d.to], d.is(s))
					}
					for i := d.from; i < d.to; i++ {
						free[i] = d.is == nil
					}
				}
				if all := diff(name, msg, old, allowed, s); all != nil {
					t.Fatalf("%s: %v", name, all)
				}
				for i := range msg {
					msg[i] ^= 0x40
					if all := diff(name, msg, old, allowed, s); (all == nil) != free[i] {
						t.Errorf("%s with another byte %d: %v", name, i, all)
					}
					msg[i] ^= 0x40
				}
				if diff(name, msg[:len(msg)-1], old, allowed, s) == nil {
					t.Errorf("%s may be shorter", name)
				}
			}
		}
	}
	for _, d := range allowed {
		if !used[d.String()] {
			t.Errorf("no recorded message has %s", d)
		}
	}
}
