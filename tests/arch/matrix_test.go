// SPDX-License-Identifier: Apache-2.0

//go:build linux

package arch

import (
	"strings"
	"testing"
)

// TestRan checks that the file of results is as -update-architectures writes it, and that all of its results are of the matrix.
func TestRan(t *testing.T) {
	all, err := parseRan(ran)
	if err != nil {
		t.Fatal(err)
	}
	if want := formatRan(all); ran != want {
		t.Errorf("ran.txt is not in the generated form. Have:\n%s\nwant:\n%s", ran, want)
	}
	for _, line := range []string{"a\tb\tc\tSMC-D", "a\tb\tc\tno suite\tpassed", "a\tb\tc\tSMC-D\tperhaps"} {
		if _, err := parseRan(line + "\n"); err == nil {
			t.Errorf("%q is no result, and no error", line)
		}
	}
}

// everything is results of all suites of the matrix.
func everything() (all []result) {
	for _, p := range append([]pair{bigEndian()}, pairs()...) {
		for _, suite := range suites {
			if p.has(suite) {
				all = append(all, result{p.String(), "7.2.13", "4", suite, passed})
			}
		}
	}
	return all
}

// TestMatrix checks that the matrix shows what has not run, and why.
func TestMatrix(t *testing.T) {
	all := everything()
	complete, err := matrix(all, nil)
	if err != nil || strings.Contains(complete, "not run") || !strings.Contains(complete, "| arm64-16k 6.1 |") {
		t.Fatalf("%v:\n%s", err, complete)
	}
	last := all[len(all)-1]
	if shown, err := matrix(all[:len(all)-1], nil); err != nil || strings.Count(shown, notRun) != 1 {
		t.Errorf("%v: one of these has not run:\n%s", err, shown)
	}
	for _, reasons := range []map[string]string{{last.pair: "a reason"}, {"no hosts": "a reason"}} {
		if _, err := matrix(all, reasons); err == nil {
			t.Errorf("everything has run, and yet there are reasons: %v", reasons)
		}
	}
	text, err := matrix(all[:len(all)-1], map[string]string{last.pair: "a reason"})
	if err != nil || strings.Count(text, "not run") != 1 || !strings.Contains(text, "| not run | a reason |") {
		t.Errorf("%v:\n%s", err, text)
	}
}
