// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"bytes"
	"fmt"
	"io"
	"strings"
)

// Limits of a table file. Their only purpose is to refuse other files.
const (
	// MaxFileSize is the size of the largest table file, in bytes.
	MaxFileSize = 4 << 20
	// MaxLineLen is the length of the longest line in a table file, in bytes.
	MaxLineLen = 4096
)

// Parse reads a table file, which describes the whole table: one entry per line, as "add" of Grammar has it. A '#' at
// the start of a word begins a comment, blank lines are ignored, and lines may end in CR LF. name is used in errors.
//
// Parse refuses lines with "del", because the file lists the whole table. It refuses duplicates, and entries that contradict
// another by naming the same device. It returns the first mistake in the file as a *ParseError, and errors of r unchanged.
func Parse(r io.Reader, name string) (Table, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) > MaxFileSize {
		return nil, &ParseError{
			Position: Position{File: name, Line: 1, Col: 1},
			Err:      fmt.Errorf("not a table file: larger than %d bytes", MaxFileSize),
		}
	}
	// Some editors put a byte order mark in front.
	text = bytes.TrimPrefix(text, []byte("\ufeff"))

	p := fileParser{seen: make(map[Entry]Position)}
	line := 0
	for l := range bytes.Lines(text) {
		line++
		l = bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
		if err := p.line(string(l), Position{File: name, Line: line, Col: 1}); err != nil {
			return nil, err
		}
	}
	return p.table, nil
}

// fileParser collects the entries of a table file.
type fileParser struct {
	table Table
	// seen has the position of each device. Its keys are entries with nothing but the name of the device.
	seen map[Entry]Position
}

// line parses one line, which starts at pos.
func (p *fileParser) line(l string, pos Position) error {
	words, err := splitLine(l, pos)
	if err != nil || len(words) == 0 {
		return err
	}
	end := word{pos: pos}
	end.pos.Col += len(l)
	c, err := parseWords(words, end)
	if err != nil {
		return err
	}
	if c.Delete {
		return words[0].errorf("'del' in a table file: a table file lists the entries that the table shall have; leave this one out")
	}
	// The kernel has one entry per device, whatever its port.
	device := Entry{Eth: c.Entry.Eth, IB: c.Entry.IB}
	if other, ok := p.seen[device]; ok {
		first, _ := p.table.Conflict(c.Entry)
		err := fmt.Errorf("%s contradicts %s at %s: a device can be in one entry only", c.Entry, first, other)
		if first == c.Entry {
			err = fmt.Errorf("%s is a duplicate of the entry at %s", c.Entry, other)
		}
		return &ParseError{Position: words[0].pos, Other: other, Err: err}
	}
	p.seen[device] = words[0].pos
	p.table = append(p.table, c.Entry)
	return nil
}

// splitLine returns the words of a line, without the comment.
func splitLine(l string, pos Position) ([]word, error) {
	at := func(i int) word {
		p := pos
		p.Col += i
		return word{pos: p}
	}
	if len(l) > MaxLineLen {
		return nil, at(MaxLineLen).errorf("line longer than %d bytes", MaxLineLen)
	}
	var words []word
	start := -1 // of the current word, -1 between words
	for i := 0; i <= len(l); i++ {
		switch {
		case i == len(l) || l[i] == ' ' || l[i] == '\t':
			if start >= 0 {
				w := at(start)
				w.text = l[start:i]
				words = append(words, w)
				start = -1
			}
		case l[i] == 0:
			return nil, at(i).errorf("zero byte: not a text file")
		case l[i] == '#' && start < 0:
			if j := strings.IndexByte(l[i:], 0); j >= 0 {
				return nil, at(i + j).errorf("zero byte: not a text file")
			}
			return words, nil
		case l[i] < ' ' || l[i] == 0x7f:
			return nil, at(i).errorf("control character %q", l[i])
		case start < 0:
			start = i
		}
	}
	return words, nil
}

// Format returns the table as the text of a table file, from which Parse makes the same table again. The error is an
// *InvalidError, for an entry that the grammar cannot express, as programs other than this one may have added it.
func (t Table) Format() (string, error) {
	var b strings.Builder
	for _, e := range t {
		if err := e.checkFormat(); err != nil {
			return "", err
		}
		b.WriteString("add " + e.String() + "\n")
	}
	return b.String(), nil
}

// checkFormat reports whether the grammar has words for e.
func (e Entry) checkFormat() error {
	if err := e.Check(); err != nil {
		return err
	}
	if strings.HasPrefix(e.Eth+e.IB, "#") {
		return &InvalidError{What: "device", Value: e.Eth + e.IB, Reason: "in a table file this would be a comment"}
	}
	return nil
}
