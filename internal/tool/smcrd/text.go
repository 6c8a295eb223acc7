// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"strings"
	"unicode/utf8"

	"github.com/smckit/smckit/internal/cli"
)

// left pads s to n columns. It does not truncate a longer s.
func left(s string, n int) string {
	s = cli.Printable(s)
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// fixed makes s exactly n columns wide.
func fixed(s string, n int) string {
	s = left(s, n)
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// trim removes the blanks with which the kernel pads some names.
func trim(s string) string { return cli.Printable(strings.Trim(s, " ")) }

func yesNo(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}
