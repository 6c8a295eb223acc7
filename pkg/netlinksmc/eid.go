// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/smckit/smckit/pkg/smcerr"
)

// eidLen is the length of an EID on the wire, where shorter ones are padded with blanks.
const eidLen = 32

// CheckEID checks a user EID by the rules of the kernel: 1 to 32 characters out of A-Z, 0-9, '.' and
// '-', the first a letter or digit, no two dots in a row. The error is ErrInvalidEID, and its text names the broken rule.
func CheckEID(eid string) error {
	if rule := brokenEIDRule(eid); rule != "" {
		return &smcerr.Error{Op: "user EID", Object: strconv.Quote(eid), Kind: ErrInvalidEID, Remedy: rule}
	}
	return nil
}

// brokenEIDRule returns the first rule that eid breaks, or the empty string.
func brokenEIDRule(eid string) string {
	switch {
	case eid == "":
		return "it is empty"
	case len(eid) > eidLen:
		return fmt.Sprintf("it is longer than %d characters", eidLen)
	case !isEIDAlnum(eid[0]):
		return "the first character must be A-Z or 0-9"
	case strings.Contains(eid, ".."):
		return "it has two dots in a row"
	}
	for i := range len(eid) {
		if c := eid[i]; !isEIDAlnum(c) && c != '.' && c != '-' {
			return fmt.Sprintf("character %d is not one of A-Z, 0-9, '.' and '-'", i+1)
		}
	}
	return ""
}

func isEIDAlnum(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
