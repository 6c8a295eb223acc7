// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
)

// TestCompare checks that a difference leads from one list to the other, and that what stays is as long as can be.
func TestCompare(t *testing.T) {
	list := func(ports string) (rules []Rule) {
		for _, p := range ports {
			rules = append(rules, Rule{Verdict: SMC, Ports: []PortRange{{First: uint16(p), Last: uint16(p)}}})
		}
		return rules
	}
	for _, tt := range []struct {
		from, to       string
		removed, added int
	}{{"", "", 0, 0}, {"", "ab", 0, 2}, {"ab", "", 2, 0}, {"abc", "abc", 0, 0}, {"abc", "acb", 1, 1}, {"abcd", "xbcy", 2, 2}, {"abc", "cab", 1, 1}} {
		from := list(tt.from)
		for i := range from {
			from[i].ID = uint32(i + 1)
		}
		d := Compare(from, list(tt.to))
		for _, r := range d.To {
			if r.ID != 0 != strings.ContainsRune(tt.from, rune(r.Ports[0].First)) {
				t.Errorf("%s to %s: %+v", tt.from, tt.to, r)
			}
		}
		if len(d.Removed) != tt.removed || len(d.Added) != tt.added || d.Changed() != (tt.from != tt.to) {
			t.Errorf("%s to %s: %d removed, %d added", tt.from, tt.to, len(d.Removed), len(d.Added))
		}
	}
}
