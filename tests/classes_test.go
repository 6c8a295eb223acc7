// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFaultClasses checks that the tests that docs/security.md names for classes of faults exist.
func TestFaultClasses(t *testing.T) {
	doc := string(read(t, "docs/security.md"))
	_, table, ok := strings.Cut(doc, "## Faults that AF_SMC has had")
	if !ok {
		t.Fatal("docs/security.md has no table of classes of faults")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var sources bytes.Buffer
	for _, pattern := range []string{"*/*_test.go", "*/inside/*_test.go", "conformance/suite/*.c"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources.Write(b)
		}
	}
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 || strings.HasPrefix(cells[1], "-") || strings.TrimSpace(cells[2]) == "test" {
			continue
		}
		rows++
		names := regexp.MustCompile(`Test\w+|stress_\w+|fuzz_\w+`).FindAllString(cells[2], -1)
		if len(names) == 0 {
			t.Errorf("no test for%s", cells[1])
		}
		for _, name := range names {
			if _, err := os.Stat("wire/fuzz/" + name + ".c"); err == nil {
				continue
			}
			if !regexp.MustCompile(`(func |CHECK_CONN\()` + name + `\(?`).Match(sources.Bytes()) {
				t.Errorf("there is no %s, which is to cover%s", name, cells[1])
			}
		}
	}
	if rows < 13 {
		t.Errorf("only %d classes", rows)
	}
}
