// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/olekukonko/tablewriter"
	"github.com/olekukonko/tablewriter/renderer"
	"github.com/olekukonko/tablewriter/tw"
	"github.com/smckit/smckit/internal/jsondoc"
)

// WriteJSON writes v as an indented JSON document with a final newline. Commands call Env.WriteJSON.
func WriteJSON(w io.Writer, v any) error { return jsondoc.Encode(w, v, true) }

// WriteJSONLine writes v as one line of JSON. Commands call Env.WriteJSONLine.
func WriteJSONLine(w io.Writer, v any) error { return jsondoc.Encode(w, v, false) }

// WriteTable writes rows under header with columns separated by two blanks, no lines, and no blanks at the end of a row, which
// would wrap as empty lines. It never truncates a cell: the terminal wraps a table that is too wide, so that scripts and users
// get the same text.
func WriteTable(w io.Writer, header []string, rows [][]string) error {
	var buf bytes.Buffer
	t := tablewriter.NewTable(&buf,
		tablewriter.WithRenderer(renderer.NewBlueprint(tw.Rendition{
			Borders: tw.BorderNone,
			Symbols: tw.NewSymbols(tw.StyleNone),
			Settings: tw.Settings{
				Separators: tw.SeparatorsNone,
				Lines:      tw.LinesNone,
			},
		})),
		tablewriter.WithHeaderAutoFormat(tw.Off),
		tablewriter.WithHeaderAlignment(tw.AlignLeft),
		tablewriter.WithRowAlignment(tw.AlignLeft),
		tablewriter.WithHeaderAutoWrap(tw.WrapNone),
		tablewriter.WithRowAutoWrap(tw.WrapNone),
		tablewriter.WithPadding(tw.Padding{Left: "", Right: "  ", Overwrite: true}),
	)
	t.Header(header)
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, c := range row {
			cells[i] = Printable(c)
		}
		if err := t.Append(cells); err != nil {
			return fmt.Errorf("table: %w", err)
		}
	}
	if err := t.Render(); err != nil {
		return fmt.Errorf("table: %w", err)
	}
	// The library pads the last column too, and does not return errors of its writer.
	for line := range strings.Lines(buf.String()) {
		if _, err := io.WriteString(w, strings.TrimRight(line, " \n")+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// Printable replaces every byte that is not part of valid UTF-8, and every control character, by \xNN, so that a name chosen by
// others cannot control the terminal.
func Printable(s string) string {
	clean := true
	for _, r := range s {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if (r == utf8.RuneError && n == 1) || !unicode.IsPrint(r) {
			for i := range n {
				fmt.Fprintf(&b, `\x%02x`, s[i])
			}
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// OneLine folds s into a single printable line.
func OneLine(s string) string {
	return Printable(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("\n\r\t", r) }), " "))
}
