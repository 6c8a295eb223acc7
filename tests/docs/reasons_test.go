// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// TestReasons compares the headings and first lines of docs/troubleshooting.md with the reasons that the commands show, so that
// none is missing, outdated, or without advice.
func TestReasons(t *testing.T) {
	section := regexp.MustCompile(`(?m)^### (0x[0-9a-f]{8}) (\S+)\n\n((?:.+\n)+)\n((?:\* .+\n(?:  .+\n)*)+)`)
	item := regexp.MustCompile(`(?m)^\* (\w+):`)
	remedy := regexp.MustCompile(`(?m)^\* Remedy: (.+)\.$`)
	const only = "Only the stock module gives this reason."
	given := reasonsGiven(t)
	type entry struct{ Code, Name, Text, Remedy string }
	var want, got []entry
	for _, r := range netlinksmc.Reasons() {
		want = append(want, entry{r.String(), r.Name(), strings.ToUpper(r.Text()[:1]) + r.Text()[1:], r.Remedy()})
	}
	for _, m := range section.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1) {
		e := entry{Code: m[1], Name: m[2], Text: m[3]}
		if r := remedy.FindStringSubmatch(m[4]); r != nil {
			e.Remedy = r[1]
		}
		if text := regexp.MustCompile(`^(.+)\.\n`).FindStringSubmatch(m[3]); text != nil {
			e.Text = text[1]
		}
		var items []string
		for _, i := range item.FindAllStringSubmatch(m[4], -1) {
			items = append(items, i[1])
		}
		if fmt.Sprint(items) != "[Means Look Remedy]" {
			t.Errorf("%s %s: items %q, not Means, Look and Remedy", m[1], m[2], items)
		}
		got = append(got, e)
		if said := strings.Contains(strings.Join(strings.Fields(m[4]), " "), only); said == given[e.Name] {
			t.Errorf("%s: our module gives this reason: %t; the document says that only the stock one does: %t", e.Name, given[e.Name], said)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/troubleshooting.md (-reason_gen.go +document):\n%s", diff)
	}
}

// reasonsGiven finds the names of the reasons that our module sends, in its sources.
func reasonsGiven(t *testing.T) map[string]bool {
	t.Helper()
	constant := regexp.MustCompile(`SMC_REASON_\w+`)
	used := map[string]bool{}
	err := filepath.WalkDir(root+"/kernel", func(path string, d os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".c") || strings.HasSuffix(path, "wire/reason_gen.c") || strings.HasSuffix(path, "null.c") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, c := range constant.FindAllString(string(data), -1) {
			used[c] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]bool{}
	for _, m := range regexp.MustCompile(`\{ (SMC_REASON_\w+), "(\w+)", \d \}`).FindAllStringSubmatch(read(t, "kernel/wire/reason_gen.c"), -1) {
		given[m[2]] = used[m[1]]
	}
	if len(given) != len(netlinksmc.Reasons()) {
		t.Fatalf("%d names in kernel/wire/reason_gen.c: the search for them is wrong", len(given))
	}
	return given
}
