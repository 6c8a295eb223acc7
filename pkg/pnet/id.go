// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/smckit/smckit/pkg/smcerr"
)

// MaxIDLen is how many characters a PNET ID may have.
const MaxIDLen = maxPNETIDName

// ID is a PNET ID, the name of a physical network. One that ParseID has returned consists of 1 to 16 characters of A-Z
// and 0-9. One that the kernel has returned may contain other bytes: the kernel also accepts letters of Latin-1.
type ID string

// InvalidError is a value that breaks the rules of the PNET table; the kernel was not asked.
type InvalidError struct {
	// What is the kind of the value, such as "PNET ID".
	What string
	// Value is the value as it was given.
	Value string
	// Reason is the rule that the value breaks.
	Reason string
}

// Error returns one line with kind, value and reason. A long value is cut.
func (e *InvalidError) Error() string {
	return fmt.Sprintf("%s %s: %s", e.What, smcerr.Quote(e.Value), e.Reason)
}

// ParseID checks a PNET ID and returns it as the kernel stores it: without surrounding blanks, and in upper case. The
// error is an *InvalidError.
func ParseID(s string) (ID, error) {
	invalid := func(format string, args ...any) (ID, error) {
		return "", &InvalidError{What: "PNET ID", Value: s, Reason: fmt.Sprintf(format, args...)}
	}
	id := strings.Trim(s, " \t\n\v\f\r")
	if id == "" {
		return invalid("empty, 1 to %d letters and digits are needed", MaxIDLen)
	}
	if n := utf8.RuneCountInString(id); n > MaxIDLen {
		return invalid("%d characters long, at most %d are allowed", n, MaxIDLen)
	}
	position := 0
	for i, r := range id {
		position++
		if !isIDChar(r) {
			_, size := utf8.DecodeRuneInString(id[i:])
			return invalid("character %s at position %d, only letters (A-Z) and digits are allowed",
				smcerr.Quote(id[i:i+size]), position)
		}
	}
	return ID(strings.ToUpper(id)), nil
}

func isIDChar(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9'
}
