// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"maps"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/pnet"
)

// merge returns a text with changed lines. The text must have been parsed without a mistake. merge calls replace with the
// content of each line that has one, keeps the comment of the line, and writes the returned content instead, or removes the
// line if drop is true. Lines without content, such as comments, stay. added returns new lines for the end.
func merge(text string, replace func(content string) (with string, drop bool), added func() []string) string {
	var b strings.Builder
	for raw := range strings.Lines(text) {
		content, comment := split(raw)
		if strings.Trim(content, " \t") == "" {
			b.WriteString(raw)
			continue
		}
		with, drop := replace(content)
		switch {
		case drop:
		case with == content:
			b.WriteString(raw)
		default:
			b.WriteString(with + comment + "\n")
		}
	}
	lines := added()
	if s := b.String(); len(lines) > 0 && s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteString("\n")
	}
	for _, l := range lines {
		b.WriteString(l + "\n")
	}
	return b.String()
}

// MergeTable changes the text of a table file so that it contains the entries of t. It keeps comments, and the order of the
// entries that stay. An entry that is not in t stays if keep returns true. The error is that of pnet.Table.Format.
func MergeTable(text string, t pnet.Table, keep func(pnet.Entry) bool) (string, error) {
	if _, err := t.Format(); err != nil {
		return "", err
	}
	seen := map[pnet.Entry]bool{}
	return merge(text, func(content string) (string, bool) {
		line, err := pnet.Parse(strings.NewReader(content), "")
		if err != nil || len(line) != 1 {
			return content, false
		}
		e := line[0]
		seen[e] = true
		return content, !t.Has(e) && !keep(e)
	}, func() []string {
		var lines []string
		for _, e := range t {
			if !seen[e] {
				lines = append(lines, "add "+e.String())
			}
		}
		return lines
	}), nil
}

// MergeEIDs changes the text of a file of EIDs so that it contains those of e. It keeps comments. If e does not set the system
// EID, the line about it stays, unless it is 'seid disable' and there is no user EID, which is not allowed.
func MergeEIDs(text string, e EIDs) string {
	left := e.Lines()
	return merge(text, func(content string) (string, bool) {
		words := fields(content)
		if words[0] == systemWord && e.System == nil {
			return content, words[1] == disableWord && len(e.User) == 0
		}
		line := strings.Join(words, " ")
		if i := slices.Index(left, line); i >= 0 {
			left = slices.Delete(left, i, i+1)
			return content, false
		}
		return content, true
	}, func() []string { return left })
}

// MergeSettings changes the text of a file of settings so that it contains these values. It changes the settings that the file
// contains, and adds others only if they differ from the default. Comments, and settings that are not in values, stay.
func MergeSettings(text string, values map[string]uint64) string {
	left := maps.Clone(values)
	return merge(text, func(content string) (string, bool) {
		a, err := parseAssignment(strings.Trim(content, " \t"))
		value, ok := values[a.Setting.Name]
		if err != nil || !ok {
			return content, false
		}
		delete(left, a.Setting.Name)
		if value == a.Value {
			return content, false
		}
		return Assignment{a.Setting, value}.String(), false
	}, func() []string {
		var lines []string
		for _, s := range Settings {
			if value, ok := left[s.Name]; ok && value != s.Default {
				lines = append(lines, Assignment{s, value}.String())
			}
		}
		return lines
	})
}
