// SPDX-License-Identifier: Apache-2.0

// Package docs checks the command lines of the documents: the command's own parser checks each of them, and guests run them in
// the order of the document.
//
// A command line is a statement in a fenced block whose language is sh. What is to be known for running it stands in an
// HTML comment directly above the fence, which readers do not see:
//
//	<!-- run: on both -->                                  all of the block, on both hosts instead of the first
//	<!-- run: `smc_chk --server` on b, serves -->          this statement
//	<!-- run by tests/demo/main.go -->                     not here, but there
//	<!-- run by tests/x_test.go: on both -->               the same, and how
//	<!-- not run: it takes an hour -->                     nowhere, and why
//
// After the colon there may be several, separated by semicolons. What can be said of a statement:
//
//	on a, on b, on both      which host it is run on
//	serves                   it goes on until the end of the document; the next one waits until it listens
//	stays                    the same, but the next one waits until it has printed something
//	goes on                  it goes on until it is interrupted, which it is after its first output
//	fails                    its exit status is 1: the document says so
//	not run (REASON)
//
// A statement that ends in & counts as "serves".
package docs

import (
	"fmt"
	"regexp"
	"strings"
)

// Block is a fenced block of command lines.
type Block struct {
	File    string
	Section string // the heading above it
	Line    int    // of the fence, from 1
	// By is the file that runs the block, Skip why nothing does; both are empty for a block that is run.
	By, Skip string
	Lines    []Line
}

// Line is a command line, which may have several lines.
type Line struct {
	Number int // in the file, from 1
	Text   string
	Calls  []Call
	How
}

// First returns the program that the line begins with, and its arguments, or nothing for a line that only sets variables.
func (l Line) First() Call {
	if len(l.Calls) == 0 {
		return Call{""}
	}
	return l.Calls[0]
}

// How describes how a command line is run.
type How struct {
	// On are names of hosts.
	On                           []string
	Serves, Stays, GoesOn, Fails bool
	// Skip is why it is not run.
	Skip string
}

var (
	title   = regexp.MustCompile(`^#+ +(.+)$`)
	fence   = regexp.MustCompile("^ *(```+)\\s*(\\S*)")
	comment = regexp.MustCompile(`(?s)^<!-- *(run:|run by |not run:)(.*)-->$`)
)

// Blocks finds the command lines of a document.
func Blocks(file, text string) ([]Block, error) {
	var blocks []Block
	section := ""
	lines := strings.Split(text, "\n")
	used := map[int]bool{} // comments that belong to a block, by their first line
	for i := 0; i < len(lines); i++ {
		if m := title.FindStringSubmatch(lines[i]); m != nil {
			section = m[1]
		}
		open := fence.FindStringSubmatch(lines[i])
		if open == nil {
			continue
		}
		first := i + 1
		for i++; i < len(lines) && strings.TrimSpace(lines[i]) != open[1]; i++ {
		}
		if i == len(lines) {
			return nil, fmt.Errorf("%s:%d: the fence is not closed", file, first)
		}
		if open[2] != "sh" {
			continue
		}
		b := Block{File: file, Section: section, Line: first}
		stmts, err := statements(strings.Join(lines[first:i], "\n"), first)
		if err != nil {
			return nil, fmt.Errorf("%s:%w", file, err)
		}
		b.Lines = stmts
		begin, note := above(lines, first-1)
		used[begin] = true
		if err := b.apply(note); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, first, err)
		}
		blocks = append(blocks, b)
	}
	for i, line := range lines {
		if comment.MatchString(line) && !used[i] {
			return nil, fmt.Errorf("%s:%d: no block of sh is below the comment", file, i+1)
		}
	}
	return blocks, nil
}

// above returns the HTML comment that ends in the line before the one with the given index, and the index of its first line.
func above(lines []string, fence int) (begin int, text string) {
	if fence == 0 || !strings.HasSuffix(lines[fence-1], "-->") {
		return -1, ""
	}
	for begin = fence - 1; begin > 0 && !strings.HasPrefix(lines[begin], "<!--"); begin-- {
	}
	return begin, strings.Join(lines[begin:fence], " ")
}

// apply applies the comment above the block.
func (b *Block) apply(note string) error {
	for i := range b.Lines {
		b.Lines[i].On = []string{"a"}
	}
	m := comment.FindStringSubmatch(note)
	if m == nil {
		return nil
	}
	rest := strings.TrimSpace(m[2])
	if rest == "" {
		return fmt.Errorf("the comment says nothing after %q", m[1])
	}
	switch m[1] {
	case "not run:":
		b.Skip = rest
		return nil
	case "run by ":
		if b.By, rest, _ = strings.Cut(rest, ": "); rest == "" {
			return nil
		}
	}
	for _, item := range strings.Split(rest, ";") {
		if err := b.applyItem(strings.TrimSpace(item)); err != nil {
			return err
		}
	}
	return nil
}

var (
	itemLine = regexp.MustCompile("^`([^`]+)` *")
	itemHow  = regexp.MustCompile(`^(on (?:a|b|both)|serves|stays|goes on|fails|not run \(([^)]+)\))(?:, *|$)`)
)

// applyItem applies one item of "run:".
func (b *Block) applyItem(item string) error {
	only := ""
	if m := itemLine.FindStringSubmatch(item); m != nil {
		only, item = m[1], item[len(m[0]):]
	}
	if item == "" {
		return fmt.Errorf("the comment says nothing of %q", only)
	}
	found := false
	for i := range b.Lines {
		if only == "" || b.Lines[i].Text == only {
			found = true
			if err := b.Lines[i].apply(item); err != nil {
				return err
			}
		}
	}
	if !found {
		return fmt.Errorf("the comment is about %q, which is not in the block", only)
	}
	return nil
}

func (h *How) apply(words string) error {
	for words != "" {
		m := itemHow.FindStringSubmatch(words)
		if m == nil {
			return fmt.Errorf("%q in the comment is not understood", words)
		}
		words = words[len(m[0]):]
		switch m[1] {
		case "on a", "on b":
			h.On = []string{m[1][3:]}
		case "on both":
			h.On = []string{"a", "b"}
		case "serves":
			h.Serves = true
		case "stays":
			h.Stays = true
		case "goes on":
			h.GoesOn = true
		case "fails":
			h.Fails = true
		default:
			h.Skip = m[2]
		}
	}
	return nil
}
