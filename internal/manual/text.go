// SPDX-License-Identifier: Apache-2.0

package manual

import (
	"regexp"
	"strings"
)

// A help text is laid out for terminals. The parser recognises its parts by their layout:
//
//   - a line of its own at the margin with indented lines right below it is the title of a section;
//   - lines of the same indentation are a paragraph; one in braces is verbatim, as JSON is;
//   - "term  text" with two blanks or more in between is an entry of a list, and so is a line with deeper lines right below.

// section is a part of a help text with a title; the part before the first title has none.
type section struct {
	title  string
	blocks []block
}

// block is a paragraph, verbatim text, or a list.
type block struct {
	text     string   // of a paragraph
	verbatim []string // lines
	items    []item
}

// item is an entry of a list.
type item struct {
	term string
	body []block
}

var gap = regexp.MustCompile("  +")

// cells splits a row at gaps of two or more blanks.
func cells(line string) []string { return gap.Split(strings.TrimSpace(line), -1) }

// parse reads a help text.
func parse(text string) []section {
	sections := []section{{}}
	var body []string
	flush := func() {
		s := &sections[len(sections)-1]
		s.blocks = parseBlocks(body)
		body = nil
	}
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	for i, l := range lines {
		if isTitle(lines, i) {
			flush()
			sections = append(sections, section{title: strings.TrimSuffix(l, ":")})
			continue
		}
		body = append(body, l)
	}
	flush()
	if sections[0].blocks == nil {
		sections = sections[1:]
	}
	return sections
}

// isTitle reports whether a line is a title: a single line at the margin, above an indented line.
func isTitle(lines []string, i int) bool {
	return indent(lines[i]) == 0 && (i == 0 || lines[i-1] == "") && i+1 < len(lines) && indent(lines[i+1]) > 0 &&
		len(cells(lines[i])) == 1
}

// indent counts the blanks at the start of a line; -1 if the line is empty.
func indent(line string) int {
	text := strings.TrimLeft(line, " ")
	if text == "" {
		return -1
	}
	return len(line) - len(text)
}

// parseBlocks reads the body of a section or of an entry.
func parseBlocks(lines []string) []block {
	var blocks []block
	for i := 0; i < len(lines); {
		n := blockLen(lines[i:])
		part := lines[i : i+n]
		i += n
		if indent(part[0]) < 0 {
			continue
		}
		b := parseBlock(dedent(part))
		// Entries of one list may have empty lines in between.
		if last := len(blocks) - 1; last >= 0 && b[0].items != nil && blocks[last].items != nil {
			blocks[last].items = append(blocks[last].items, b[0].items...)
			b = b[1:]
		}
		blocks = append(blocks, b...)
	}
	return blocks
}

// blockLen returns the number of lines in the first block: an empty line, or all lines up to the next one that is empty or has
// another margin. An entry of a list includes its indented lines, even after an empty line.
func blockLen(lines []string) int {
	margin := indent(lines[0])
	if margin < 0 {
		return 1
	}
	n := 1
	if isVerbatim(lines[0]) {
		for n < len(lines) && indent(lines[n]) >= 0 {
			n++
		}
		return n
	}
	entry := isEntry(lines)
	for ; n < len(lines); n++ {
		in := indent(lines[n])
		switch {
		case in < 0 && (!entry || n+1 == len(lines) || indent(lines[n+1]) <= margin):
			return n
		case in < 0 || in > margin:
		case in < margin, entry, isEntry(lines[n:]):
			return n
		}
	}
	return n
}

// isVerbatim reports whether verbatim text begins with a line. It ends at the next empty line.
func isVerbatim(line string) bool { return strings.HasPrefix(strings.TrimLeft(line, " "), "{") }

// isEntry reports whether an entry of a list begins here: a row with a gap, or a line above an indented one.
func isEntry(lines []string) bool {
	l := lines[0]
	if isVerbatim(l) {
		return false
	}
	if len(cells(l)) > 1 {
		return true
	}
	return len(lines) > 1 && indent(lines[1]) > indent(l) && !strings.HasSuffix(l, ":")
}

// parseBlock parses the lines of a block. Indented lines below a paragraph are a separate block.
func parseBlock(lines []string) []block {
	if isVerbatim(lines[0]) {
		return []block{{verbatim: lines}}
	}
	if isEntry(lines) {
		return []block{{items: []item{parseItem(lines)}}}
	}
	n := 1
	for n < len(lines) && indent(lines[n]) == 0 {
		n++
	}
	return append([]block{{text: strings.Join(lines[:n], " ")}}, parseBlocks(lines[n:])...)
}

// parseItem parses an entry of a list. In a row with more than two cells, all except the last are the term.
func parseItem(lines []string) item {
	row, rest := cells(lines[0]), dedent(lines[1:])
	last := len(row) - 1
	if last == 0 {
		return item{lines[0], parseBlocks(rest)}
	}
	return item{strings.Join(row[:last], " "), parseBlocks(append(row[last:], rest...))}
}

// dedent removes the blanks at the start that all lines have in common.
func dedent(lines []string) []string {
	margin := -1
	for _, l := range lines {
		if in := indent(l); in >= 0 && (margin < 0 || in < margin) {
			margin = in
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if indent(l) >= 0 {
			out[i] = l[margin:]
		}
	}
	return out
}
