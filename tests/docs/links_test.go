// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	// Characters that forges leave out of the anchor of a heading.
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the names of a document's headings.
func anchors(text string) map[string]bool {
	names := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		name := punctuation.ReplaceAllString(strings.ToLower(m[1]), "")
		names[strings.ReplaceAll(name, " ", "-")] = true
	}
	return names
}

// TestLinks checks that links between documents lead somewhere.
func TestLinks(t *testing.T) {
	for _, name := range append(files(t), "CHANGELOG.md", "kernel/README.md") {
		for _, m := range link.FindAllStringSubmatch(read(t, name), -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			file := name
			if target != "" {
				file = path.Join(path.Dir(name), target)
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: a link to %s, which is not there", name, m[1])
				continue
			}
			if anchor != "" && !anchors(read(t, file))[anchor] {
				t.Errorf("%s: a link to %s, and %s has no such heading", name, m[1], file)
			}
		}
	}
}

// TestIndex checks that docs/README.md leads to every document.
func TestIndex(t *testing.T) {
	index := read(t, "docs/README.md")
	for _, name := range files(t) {
		if base, ok := strings.CutPrefix(name, "docs/"); ok && base != "README.md" && !strings.Contains(index, "("+base+")") {
			t.Errorf("docs/README.md has no link to %s", base)
		}
	}
}

// TestGlossary checks that each guide leads to the glossary.
func TestGlossary(t *testing.T) {
	n := 0
	for _, m := range link.FindAllStringSubmatch(section(t, "docs/README.md", "## Guides"), -1) {
		if strings.Contains(m[1], "/") {
			continue
		}
		n++
		if text := read(t, "docs/"+m[1]); !strings.Contains(text, "(glossary.md") {
			t.Errorf("docs/%s has no link to glossary.md", m[1])
		}
	}
	if n < 10 {
		t.Errorf("only %d guides: the search for them is wrong", n)
	}
}

// TestTenQuestions checks that README leads to the questions of new readers, and that each has an answer and a link to more.
func TestTenQuestions(t *testing.T) {
	if !strings.Contains(read(t, "README.md"), "(docs/README.md#ten-questions)") {
		t.Error("README.md does not lead to the ten questions")
	}
	row := regexp.MustCompile(`(?m)^\| ([^|]+\?) \| ([^|]+) \| ([^|]+) \|$`)
	rows := row.FindAllStringSubmatch(section(t, "docs/README.md", "## Ten questions"), -1)
	if len(rows) != 10 {
		t.Errorf("%d questions", len(rows))
	}
	for _, m := range rows {
		if !link.MatchString(m[3]) {
			t.Errorf("%s no document has the answer", m[1])
		}
	}
}

// section returns the text below a heading of the second level.
func section(t *testing.T, name, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(read(t, name), heading+"\n")
	if !ok {
		t.Fatalf("%s has no heading %q", name, heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}
