// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"strings"
	"testing"
	"time"
)

func TestDescribe(t *testing.T) {
	type common struct {
		Schema int `json:"schema"`
	}
	type port struct {
		Number uint8  `json:"port"`
		State  string `json:"state,omitempty"`
	}
	type doc struct {
		common
		Time    time.Time `json:"time"`
		Names   []string  `json:"names"`
		Hidden  int       `json:"-"`
		First   *port     `json:"first,omitempty"`
		Ports   []port    `json:"list_with_a_long_key"`
		Seconds *float64  `json:"seconds,omitempty"`
	}
	want := "  schema; time; names [string]; first {port, state}; list_with_a_long_key\n  [{port, state}]; seconds. Times are local."
	got := Describe(doc{}, ". Times are local.")
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for line := range strings.Lines(got) {
		if len(strings.TrimRight(line, "\n")) > 80 {
			t.Errorf("a line of %d columns: %q", len(line), line)
		}
	}
}
