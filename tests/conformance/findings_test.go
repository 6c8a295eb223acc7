// SPDX-License-Identifier: Apache-2.0

//go:build linux

package conformance

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false,
	"record what stock AF_SMC does differently from TCP; several times, to find out what comes and goes")

const findingsFile = "../../docs/findings-stock.md"

// finding is the recorded failure of one check.
type finding struct {
	always, sometimes map[string]bool // names of runs
	text              string          // message of the program in the first run
}

// findings is the table in the file, by names of checks.
type findings struct {
	checks map[string]*finding
	head   string
}

const tableHead = "| check | fails | fails at times | what was seen first |\n|---|---|---|---|\n"

const fileHead = `<!-- SPDX-License-Identifier: Apache-2.0 -->
# Where stock AF_SMC is not TCP

This page lists the checks of ` + "`tests/conformance`" + ` that pass over TCP but not over the AF_SMC of Debian's kernel 6.12. There is no SMC
device, so every connection falls back to TCP. Each run has a domain (smc and smc6: AF_SMC sockets, ipproto and ipproto6: IPPROTO_SMC)
and a mode: both ends of that domain, seen from the client or the server, or with plain TCP at the other end (to-tcp, from-tcp). Checks
of a single socket run as client only.

` + "`SMCKIT_LAB=1 SMCKIT_STOCK=1 go test ./tests/conformance -run TestStock -update`" + ` writes this page, and ` + "`make test-stock`" + ` checks that it
is current. Checks that failed in only some of the runs are in the third column; it is not checked, and neither are checks named stress_.

`

var row = regexp.MustCompile(`^\| (\w+) \| (.*?) ?\| (.*?) ?\| (.*) \|$`)

// load reads the record. It is empty before the first update.
func load(t *testing.T) *findings {
	t.Helper()
	f := &findings{checks: map[string]*finding{}, head: fileHead}
	data, err := os.ReadFile(findingsFile)
	if os.IsNotExist(err) && *update {
		return f
	}
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(data), tableHead)
	if !ok {
		t.Fatalf("%s: no table", findingsFile)
	}
	for l := range strings.Lines(table) {
		m := row.FindStringSubmatch(strings.TrimSpace(l))
		if m == nil {
			t.Fatalf("%s: not a row: %q", findingsFile, l)
		}
		f.checks[m[1]] = &finding{always: expand(m[2]), sometimes: expand(m[3]), text: m[4]}
	}
	return f
}

// save writes the record.
func (f *findings) save(t *testing.T) {
	t.Helper()
	var b strings.Builder
	b.WriteString(f.head + tableHead)
	for _, name := range slices.Sorted(maps.Keys(f.checks)) {
		d := f.checks[name]
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, shrink(d.always), shrink(d.sometimes), d.text)
	}
	if err := os.WriteFile(findingsFile, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shrink formats names of runs as "smc/client,server smc6/client", or "all/client" if all domains have the same modes.
func shrink(names map[string]bool) string {
	var words []string
	all := map[string]bool{}
	for _, d := range domains {
		var modes []string
		for _, m := range allModes {
			if names[run{d, m}.String()] {
				modes = append(modes, m.name)
			}
		}
		all[strings.Join(modes, ",")] = true
		if modes != nil {
			words = append(words, d+"/"+strings.Join(modes, ","))
		}
	}
	if len(words) == len(domains) && len(all) == 1 {
		_, modes, _ := strings.Cut(words[0], "/")
		return "all/" + modes
	}
	return strings.Join(words, " ")
}

// expand is the reverse of shrink.
func expand(cell string) map[string]bool {
	names := map[string]bool{}
	for _, word := range strings.Fields(cell) {
		domain, modes, _ := strings.Cut(word, "/")
		in := []string{domain}
		if domain == "all" {
			in = domains
		}
		for m := range strings.SplitSeq(modes, ",") {
			for _, d := range in {
				names[d+"/"+m] = true
			}
		}
	}
	return names
}

// learn adds the failures of a run. A failure that is recorded but did not occur, or occurred but is not recorded, is recorded
// as occurring sometimes. On an empty record, all failures are recorded as they occur.
func (f *findings) learn(r run, names []string, verdicts map[string]verdict) {
	seen := f.known(r)
	for _, name := range names {
		v, d := verdicts[name], f.checks[name]
		if d == nil && !v.failed {
			continue
		}
		if d == nil {
			d = &finding{always: map[string]bool{}, sometimes: map[string]bool{}, text: cell(v.text)}
			f.checks[name] = d
		}
		switch {
		case d.sometimes[r.String()]:
		case v.failed && racy(name):
			d.sometimes[r.String()] = true
		case v.failed && !seen:
			d.always[r.String()] = true
		case v.failed != d.always[r.String()]:
			delete(d.always, r.String())
			d.sometimes[r.String()] = true
		}
	}
}

// racy reports whether a check looks for races, so that its failures do not always occur.
func racy(name string) bool { return strings.HasPrefix(name, "stress_") }

// known reports whether a run is on record.
func (f *findings) known(r run) bool {
	for _, d := range f.checks {
		if d.always[r.String()] || d.sometimes[r.String()] {
			return true
		}
	}
	return false
}

// place matches the position in the program and the duration in a message. Both change without meaning.
var place = regexp.MustCompile(`( for \d+ ms at )?\b\w+\.c:\d+: `)

// cell formats a text for a cell of a table.
func cell(text string) string {
	text = place.ReplaceAllStringFunc(text, func(s string) string {
		if strings.HasPrefix(s, " for") {
			return " at "
		}
		return ""
	})
	return strings.NewReplacer("|", `\|`, "<", "&lt;").Replace(text)
}

// compare fails the test for each difference from the record.
func (f *findings) compare(t *testing.T, r run, names []string, verdicts map[string]verdict) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			v, d := verdicts[name], f.checks[name]
			always := d != nil && d.always[r.String()]
			switch {
			case racy(name) || d != nil && d.sometimes[r.String()]:
			case v.failed && !always:
				t.Errorf("fails, and is not on record: %s", v.text)
			case !v.failed && always:
				t.Errorf("passes, but is on record as failing (-update if that is right): %s", d.text)
			case v.skipped:
				t.Skip(v.text)
			}
		})
	}
}

// TestFindings checks that reading a record returns what was written.
func TestFindings(t *testing.T) {
	f := &findings{checks: map[string]*finding{}}
	r, names := run{"smc", asClient}, []string{"a", "b", "c"}
	f.learn(r, names, map[string]verdict{"a": {failed: true, text: "x | y"}, "b": {failed: true}})
	f.learn(r, names, map[string]verdict{"a": {failed: true}, "c": {failed: true}})
	for name, want := range map[string]string{"a": "smc/client|", "b": "|smc/client", "c": "|smc/client"} {
		d := f.checks[name]
		if got := shrink(d.always) + "|" + shrink(d.sometimes); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
	if text := f.checks["a"].text; text != `x \| y` {
		t.Errorf("text %q", text)
	}
	for _, words := range []string{"smc/client,to-tcp ipproto6/from-tcp", "all/client,from-tcp", ""} {
		if got := shrink(expand(words)); got != words {
			t.Errorf("%q read and written is %q", words, got)
		}
	}
	if got := cell("hung for 20000 ms at net.c:17: accept()"); got != "hung at accept()" {
		t.Errorf("cell: %q", got)
	}
}
