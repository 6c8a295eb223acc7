// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/pkg/pnet"
)

// position matches the file and line at the start of each error.
var position = regexp.MustCompile(`^f:[1-9][0-9]*:`)

// refused checks the form of an error, and reports whether there is one.
func refused(t *testing.T, err error) bool {
	if err != nil && (!position.MatchString(err.Error()) || strings.Contains(err.Error(), "\n")) {
		t.Errorf("error without a place: %q", err)
	}
	return err != nil
}

// FuzzEIDs checks that the EIDs of an accepted text do not change when they are formatted and parsed again, and that a text
// contains the EIDs that were merged into it.
func FuzzEIDs(f *testing.F) {
	for _, seed := range []string{"", "A\nB.C # x\nseid disable\n", "seid enable", "A B", "\ufeffA\r\n", "#\nA"} {
		f.Add(seed, "Z", true)
	}
	f.Add("\u00a0", "0", true)
	f.Fuzz(func(t *testing.T, text, eid string, system bool) {
		e, err := ParseEIDs(text, "f")
		if refused(t, err) {
			return
		}
		again, err := ParseEIDs(strings.Join(e.Lines(), "\n"), "f")
		if err != nil || !same(e, again) {
			t.Errorf("%q, then %q, %v", e.Lines(), again.Lines(), err)
		}
		other, err := ParseEIDs(eid+"\nseid "+SystemWord(system), "f")
		if refused(t, err) {
			return
		}
		merged := MergeEIDs(text, other)
		if got, err := ParseEIDs(merged, "f"); err != nil || !same(other, got) {
			t.Errorf("%q and %q are %q: %v", text, other.Lines(), merged, err)
		}
		if twice := MergeEIDs(merged, other); twice != merged {
			t.Errorf("%q, then %q", merged, twice)
		}
	})
}

// same compares EIDs independently of their order.
func same(a, b EIDs) bool {
	return slices.Equal(slices.Sorted(slices.Values(a.Lines())), slices.Sorted(slices.Values(b.Lines())))
}

// FuzzSettings checks the same for settings.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"", "rmem = 65536 # x\nloopback=off", "rmem", "= 1", "smcr_immediate = 1\n\n", "\ufeffrmem = 16384\r\n"} {
		f.Add(seed, uint64(131072), uint64(1))
	}
	f.Fuzz(func(t *testing.T, text string, rmem, loopback uint64) {
		all, err := ParseSettings(text, "f")
		if refused(t, err) {
			return
		}
		values := map[string]uint64{}
		var lines []string
		for _, a := range all {
			values[a.Setting.Name] = a.Value
			lines = append(lines, a.String())
		}
		if again, err := ParseSettings(strings.Join(lines, "\n"), "f"); err != nil || len(again) != len(all) {
			t.Errorf("%q: %v", lines, err)
		}
		values["rmem"], values["loopback"] = 16384+rmem%16384, loopback%3
		merged := MergeSettings(text, values)
		got, err := ParseSettings(merged, "f")
		if err != nil {
			t.Fatalf("%q: %v", merged, err)
		}
		for _, a := range got {
			if a.Value != values[a.Setting.Name] {
				t.Errorf("%q: %s", merged, a)
			}
			delete(values, a.Setting.Name)
		}
		for name, value := range values {
			if s, _ := Find(name); value != s.Default {
				t.Errorf("%q is without %s", merged, name)
			}
		}
		if twice := MergeSettings(merged, map[string]uint64{"rmem": 16384 + rmem%16384}); twice != merged {
			t.Errorf("%q, then %q", merged, twice)
		}
	})
}

// FuzzTable merges a table into the text of another table.
func FuzzTable(f *testing.F) {
	f.Add("add A eth eth0 # x\n# y", "add B eth eth0\nadd A ib rxe0 2")
	f.Add("\ufeffadd A eth eth0\r\n", "add A eth eth0")
	f.Add("add A eth eth0", "")
	f.Fuzz(func(t *testing.T, text, other string) {
		if _, err := pnet.Parse(strings.NewReader(text), "f"); refused(t, err) {
			return
		}
		want, err := pnet.Parse(strings.NewReader(other), "f")
		if refused(t, err) {
			return
		}
		merged, err := MergeTable(text, want, func(pnet.Entry) bool { return false })
		if err != nil {
			t.Fatal(err)
		}
		if got, err := pnet.Parse(strings.NewReader(merged), "f"); err != nil || !got.Same(want) {
			t.Errorf("%q and %q are %q: %v", text, other, merged, err)
		}
	})
}
