// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// show formats parsed sections in one line: sections as [title: ...], lists as {term = ...; ...}, verbatim lines as |line|.
func show(sections []section) string {
	var parts []string
	for _, s := range sections {
		parts = append(parts, "["+s.title+": "+showBlocks(s.blocks)+"]")
	}
	return strings.Join(parts, " ")
}

func showBlocks(blocks []block) string {
	var parts []string
	for _, b := range blocks {
		switch {
		case b.verbatim != nil:
			parts = append(parts, "|"+strings.Join(b.verbatim, "|")+"|")
		case b.items != nil:
			var items []string
			for _, it := range b.items {
				items = append(items, it.term+" = "+showBlocks(it.body))
			}
			parts = append(parts, "{"+strings.Join(items, "; ")+"}")
		default:
			parts = append(parts, b.text)
		}
	}
	return strings.Join(parts, " / ")
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name, in, want string
	}{
		{"nothing", "", ""},
		{"one line", "Show it.", "[: Show it.]"},
		{"paragraphs", "One\ntwo.\n\n\nThree.\n", "[: One two. / Three.]"},
		{
			"list below a paragraph", "Changes:\n\n  show     what is there\n  add EID  one of\n           two lines\n\nMore.",
			"[: Changes: / {show = what is there; add EID = one of two lines} / More.]",
		},
		{"no title: two lines", "Short line\nand more:\n  a  b", "[: Short line and more: / {a = b}]"},
		{"section", "Text.\n\nExit status:\n  0  done\n  1  failed", "[: Text.] [Exit status: {0 = done; 1 = failed}]"},
		{"section first", "FILES\n  /etc/a\n       of a", "[FILES: {/etc/a = of a}]"},
		{"a paragraph of a section at the margin", "METHODS\n  a  b\n\nBut c.\n\nRULES\n  d", "[METHODS: {a = b} / But c.] [RULES: d]"},
		{"text and list in a section", "Status\n  That of it, or\n  1    failed\n  126  not\n       found", "[Status: That of it, or / {1 = failed; 126 = not found}]"},
		{"term above its text", "Columns\n  Local Address, Peer Address\n            where\n            from\n  Mode      how", "[Columns: {Local Address, Peer Address = where from; Mode = how}]"},
		{"three cells", "Reasons\n  0x01  MEMORY        no memory\n  0x02  X             y", "[Reasons: {0x01 MEMORY = no memory; 0x02 X = y}]"},
		{
			"list in a list", "METHODS\n  auto  Looks at\n        the file:\n          Go program  seccomp\n          another     preload\n  next  x",
			"[METHODS: {auto = Looks at the file: / {Go program = seccomp; another = preload}; next = x}]",
		},
		{"empty lines in a list", "L\n  a  b\n\n  c  d", "[L: {a = b; c = d}]"},
		{"paragraphs of an entry", "L\n  a  b\n\n     c\n  d  e", "[L: {a = b / c; d = e}]"},
		{"verbatim to the next empty line", "JSON\n  {\"a\": [{\n      \"b\"    with -d\n  }]}\n  R: x\n\n  Text.", "[JSON: |{\"a\": [{|    \"b\"    with -d|}]}|R: x| / Text.]"},
	} {
		if diff := cmp.Diff(tt.want, show(parse(tt.in))); diff != "" {
			t.Errorf("%s (-want +got): %s", tt.name, diff)
		}
	}
}
