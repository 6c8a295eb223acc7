// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// MaxUEIDs is the maximum number of user EIDs in the kernel.
const MaxUEIDs = 4

// EIDs are the enterprise IDs of a host.
type EIDs struct {
	// User are the user EIDs.
	User []string
	// System is whether to use the system EID; nil leaves it as it is.
	System *bool
}

// Words of the line about the system EID. They are those of smcd. No user EID can look like this line, because user EIDs have
// no lower-case letters.
const (
	systemWord  = "seid"
	enableWord  = "enable"
	disableWord = "disable"
)

// SystemWord returns the word that enables or disables the system EID.
func SystemWord(enabled bool) string {
	if enabled {
		return enableWord
	}
	return disableWord
}

// ParseEIDs parses the text of a file of EIDs: lines with a user EID each, and optionally 'seid enable' or 'seid disable'. name
// is the name of the file. The error is an *Error.
func ParseEIDs(text, name string) (EIDs, error) {
	var e EIDs
	err := parseLines(text, name, e.parseLine)
	if err != nil {
		return EIDs{}, err
	}
	if e.System != nil && !*e.System && len(e.User) == 0 {
		mistake := remedy.Errorf("add one to the file, or remove this line", "the system EID cannot be disabled while there is no user EID")
		return EIDs{}, &Error{name, lineOf(text, systemWord), mistake}
	}
	return e, nil
}

func (e *EIDs) parseLine(line string) error {
	words := fields(line)
	if words[0] == systemWord {
		return e.parseSystem(words[1:])
	}
	if len(words) > 1 {
		return remedy.Errorf("a line has one user EID", "unexpected word %s", smcerr.Quote(words[1]))
	}
	eid := words[0]
	if err := netlinksmc.CheckEID(eid); err != nil {
		if nerr, ok := errors.AsType[*smcerr.Error](err); ok {
			return remedy.Errorf(nerr.Remedy, "invalid user EID %s", smcerr.Quote(eid))
		}
		return err
	}
	switch {
	case slices.Contains(e.User, eid):
		return remedy.Errorf("remove one of the lines", "user EID %s is a duplicate", eid)
	case len(e.User) == MaxUEIDs:
		return fmt.Errorf("user EID %s is one too many: the kernel stores at most %d", eid, MaxUEIDs)
	}
	e.User = append(e.User, eid)
	return nil
}

// parseSystem parses the words after systemWord.
func (e *EIDs) parseSystem(words []string) error {
	if e.System != nil {
		return remedy.Errorf("remove one of them", "a second line about the system EID")
	}
	if len(words) != 1 || words[0] != enableWord && words[0] != disableWord {
		return fmt.Errorf("'%s' is followed by '%s' or '%s'", systemWord, enableWord, disableWord)
	}
	on := words[0] == enableWord
	e.System = &on
	return nil
}

// lineOf returns the number of the line that begins with that word.
func lineOf(text, word string) int {
	n := 0
	for raw := range strings.Lines(text) {
		n++
		content, _ := split(raw)
		if words := fields(content); len(words) > 0 && words[0] == word {
			break
		}
	}
	return n
}

// Lines returns the EIDs as lines of a file.
func (e EIDs) Lines() []string {
	lines := slices.Clone(e.User)
	if e.System != nil {
		lines = append(lines, systemWord+" "+SystemWord(*e.System))
	}
	return lines
}
