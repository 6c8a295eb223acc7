// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Call is a program with its arguments. A word that the shell expands only at run time, such as the value of a variable, is
// "x".
type Call []string

// statements splits a shell script, of which the first line has the number after before.
func statements(script string, before int) ([]Line, error) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(script), "")
	if err != nil {
		return nil, fmt.Errorf("%d: not a shell script: %w", before, err)
	}
	var lines []Line
	for _, s := range file.Stmts {
		text := script[s.Pos().Offset():s.End().Offset()]
		line := Line{Number: before + int(s.Pos().Line()), Text: text, Calls: calls(s)}
		if s.Background {
			line.Text, line.Serves = strings.TrimSpace(strings.TrimSuffix(text, "&")), true
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// calls finds the programs that a statement calls, including those that are arguments of other programs.
func calls(s *syntax.Stmt) []Call {
	var found []Call
	syntax.Walk(s, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 {
			var call Call
			for _, w := range c.Args {
				call = append(call, plain(w))
			}
			for ; call != nil; call = call.inner() {
				found = append(found, call)
			}
		}
		return true
	})
	return found
}

// plain returns a word without its quotes.
func plain(w *syntax.Word) string {
	var text strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				text.WriteString(p.Value)
			case *syntax.SglQuoted:
				text.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				text.WriteString("x")
			}
		}
	}
	add(w.Parts)
	return text.String()
}

// inner returns the call that a program makes by its arguments, or nil.
func (c Call) inner() Call {
	rest := c[1:]
	switch c[0] {
	case "sudo", "env", "exec":
		for len(rest) > 0 && strings.Contains(rest[0], "=") {
			rest = rest[1:]
		}
	case "ip":
		if len(rest) < 3 || !slices.Equal(rest[:2], []string{"netns", "exec"}) {
			return nil
		}
		rest = rest[3:]
	case "smc_run":
		rest = afterOptions(rest, "-r", "-t", "--rcvbuf", "--sndbuf", "--method", "--port", "--to", "--not", "-N", "--netns")
	default:
		return nil
	}
	if len(rest) == 0 || strings.HasPrefix(rest[0], "-") {
		return nil
	}
	return rest
}

// afterOptions skips options, those named with the word that follows them.
func afterOptions(args []string, withValue ...string) []string {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		n := 1
		if slices.Contains(withValue, args[0]) {
			n = 2
		}
		args = args[min(n, len(args)):]
	}
	return args
}
