// SPDX-License-Identifier: Apache-2.0

package conf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// MaxUEIDs is how many user EIDs the kernel keeps.
const MaxUEIDs = 4

// EIDs are the enterprise IDs of a host.
type EIDs struct {
	// User are the user EIDs.
	User []string
	// System says whether the system EID is used; nil if nothing is said about it.
	System *bool
}

// The line about the system EID, which no user EID can look like: those have no small letters. The words are
// those of smcd.
const (
	systemWord  = "seid"
	enableWord  = "enable"
	disableWord = "disable"
)

// SystemWord returns the word for whether the system EID is used.
func SystemWord(enabled bool) string {
	if enabled {
		return enableWord
	}
	return disableWord
}

// ParseEIDs parses the text of a file of EIDs: a user EID in each line, and perhaps 'seid enable' or 'seid disable'. name is
// that of the file. The error is an *Error.
func ParseEIDs(text, name string) (EIDs, error) {
	var e EIDs
	err := parseLines(text, name, e.parseLine)
	if err != nil {
		return EIDs{}, err
	}
	if e.System != nil && !*e.System && len(e.User) == 0 {
		return EIDs{}, &Error{name, lineOf(text, systemWord), "the system EID cannot be disabled while there is no user EID: add one to the file, or remove this line"}
	}
	return e, nil
}

func (e *EIDs) parseLine(line string) error {
	words := fields(line)
	if words[0] == systemWord {
		return e.parseSystem(words[1:])
	}
	if len(words) > 1 {
		return fmt.Errorf("unexpected word %s: a line has one user EID", quote(words[1]))
	}
	eid := words[0]
	if err := netlinksmc.CheckEID(eid); err != nil {
		if nerr, ok := errors.AsType[*netlinksmc.Error](err); ok {
			return fmt.Errorf("invalid user EID %s: %s", quote(eid), nerr.Remedy)
		}
		return err
	}
	switch {
	case slices.Contains(e.User, eid):
		return fmt.Errorf("user EID %s is there already: remove one of the lines", eid)
	case len(e.User) == MaxUEIDs:
		return fmt.Errorf("user EID %s is one too many: the kernel keeps %d", eid, MaxUEIDs)
	}
	e.User = append(e.User, eid)
	return nil
}

// parseSystem parses what follows systemWord.
func (e *EIDs) parseSystem(words []string) error {
	if e.System != nil {
		return fmt.Errorf("a line about the system EID is there already: remove one of them")
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
