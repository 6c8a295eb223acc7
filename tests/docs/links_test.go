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
