// SPDX-License-Identifier: Apache-2.0

package unitfile

import "strings"

// option is an assignment in a unit file.
type option struct{ section, name, value string }

const blanks = " \t\r"

// parse returns the assignments of a file. A line that ends with an odd number of backslashes continues on the next line that is no comment.
// Like systemd, it ignores lines that are no assignment.
func parse(text string) []option {
	var options []option
	var section, begun string
	continued := false
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		line = strings.TrimLeft(strings.TrimRight(line, "\n"), blanks)
		if line != "" && (line[0] == '#' || line[0] == ';') {
			continue
		}
		if continued {
			line = begun + line
		}
		if continued = oddBackslashes(line); continued {
			begun = line[:len(line)-1] + " "
			continue
		}
		line = strings.Trim(line, blanks)
		if strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]") {
			section = line[1 : len(line)-1]
			continue
		}
		if name, value, ok := strings.Cut(line, "="); ok {
			options = append(options, option{section, strings.Trim(name, blanks), strings.Trim(value, blanks)})
		}
	}
	return options
}

// oddBackslashes reports whether the last backslash of a line is not escaped by another one.
func oddBackslashes(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// words splits a value at blanks that are neither quoted nor escaped. It does not change the words, so that they mean the same where
// they are written again.
func words(value string) []string {
	var list []string
	var word strings.Builder
	var quote byte
	for i := 0; i < len(value); i++ {
		c := value[i]
		switch {
		case c == '\\' && i+1 < len(value):
			word.WriteByte(c)
			i++
			c = value[i]
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte(blanks, c) >= 0:
			if word.Len() > 0 {
				list = append(list, word.String())
				word.Reset()
			}
			continue
		}
		word.WriteByte(c)
	}
	if word.Len() > 0 {
		list = append(list, word.String())
	}
	return list
}
