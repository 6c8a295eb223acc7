// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"maps"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/pnet"
)

// merge goes through the lines of a text that was parsed without a mistake and returns it with other contents. Lines
// without contents, so comments, stay. replace gets the contents of a line and returns what shall stand in its place, with
// the comment that follows; drop removes the line. added are new lines, for the end.
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

// MergeTable returns the text of a table file, changed so that it has the entries of t; comments and the order of what stays
// are kept. keep may keep an entry that is not in t. The error is that of pnet.Table.Format.
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

// MergeEIDs returns the text of a file of EIDs, changed so that it has those of e; comments are kept. What it says of the
// system EID stays if e says nothing, and for want of user EIDs to go with 'seid disable' it goes.
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

// MergeSettings returns the text of a file of settings, changed so that it has these values: those which the file has
// already, and besides those that are not the default. Comments, and settings without a value in values, stay.
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
