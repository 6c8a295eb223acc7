// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// legacyFile writes s as smc-tools does, with the given number of gauges per technology.
func legacyFile(s *Snapshot, gauges int) string {
	var b strings.Builder
	index := 0
	line := func(v uint64) {
		fmt.Fprintf(&b, "%-12d%-16d\n", index, v)
		index++
	}
	for _, t := range []*netlinksmc.TechStats{&s.SMCR, &s.SMCD} {
		for _, c := range counters {
			line(c.Value(t))
		}
		for range gauges {
			line(999999999)
		}
	}
	line(s.ClientHandshakeErrors)
	line(s.ServerHandshakeErrors)
	for _, side := range [][]netlinksmc.FallbackCount{s.Fallback.Server, s.Fallback.Client} {
		for i := range legacyReasons {
			var c netlinksmc.FallbackCount
			if i < len(side) {
				c = side[i]
			}
			fmt.Fprintf(&b, "%-12d%-16d%-16d\n", i, uint32(c.Reason), c.Count)
		}
	}
	fmt.Fprintf(&b, "%16d\n%16d\n", s.Fallback.ServerTotal, s.Fallback.ClientTotal)
	return b.String()
}

func TestParseLegacy(t *testing.T) {
	want := numbered(5)
	want.SMCR.Links, want.SMCR.RxBufUsage = nil, netlinksmc.Optional[uint64]{}
	for _, gauges := range []int{0, legacyGauges} {
		got, err := ParseLegacy([]byte(legacyFile(want, gauges)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&Baseline{Snapshot: *want}, got, cmpOpts); diff != "" {
			t.Errorf("%d gauges (-want +got):\n%s", gauges, diff)
		}
	}
	if b, err := ParseLegacy(nil); b != nil || err != nil {
		t.Errorf("empty file: %v, %v", b, err)
	}
}

func TestParseLegacyBad(t *testing.T) {
	good := legacyFile(numbered(5), legacyGauges)
	for name, data := range map[string]string{
		"a line less": good[strings.Index(good, "\n")+1:],
		"a line more": good + "1\n",
		"no newline":  strings.ReplaceAll(good, "\n", " "),
		"a word less": strings.Replace(good, "0           5               \n", "0\n", 1),
		"not number":  strings.Replace(good, "0           5 ", "0           x ", 1),
		"negative":    strings.Replace(good, "0           5 ", "0           -5", 1),
		"count":       strings.Replace(good, "50528256        2 ", "50528256        65536 ", 1),
	} {
		if data == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if b, err := ParseLegacy([]byte(data)); err == nil {
			t.Errorf("%s: accepted: %+v", name, b)
		}
	}
}

func FuzzParseLegacy(f *testing.F) {
	f.Add([]byte(legacyFile(numbered(5), 0)))
	f.Add([]byte(legacyFile(numbered(5), legacyGauges)))
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := ParseLegacy(data)
		if err != nil || b == nil {
			return
		}
		again, err := ParseLegacy([]byte(legacyFile(&b.Snapshot, 0)))
		if err != nil {
			t.Fatal(err)
		}
		// Twice the same reason is a file that smc-tools does not write, but no reason to lose one.
		if diff := cmp.Diff(b, again, cmpOpts); diff != "" {
			t.Errorf("(-first +second):\n%s", diff)
		}
	})
}
