// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smctrace

import (
	"regexp"
	"strconv"
	"strings"
)

// Event is a line of the trace.
type Event struct {
	Name string
	// Fields are the values with names, Words the others.
	Fields map[string]string
	Words  []string
}

// nameWidth is the width of the name of the thread, with which a line begins. It may have any characters.
const nameWidth = 16

// The number of the thread, perhaps that of the process, the processor, perhaps flags, the time, and the event.
var eventLine = regexp.MustCompile(`^-\d+\s+(?:\([\s\d-]+\)\s+)?\[\d+\]\s+(?:\S+\s+)?[\d.]+: (\w+): ?(.*)$`)

// lostLine says that events were lost because the buffer of a processor was full.
var lostLine = regexp.MustCompile(`^CPU:\d+ \[LOST (\d+) EVENTS\]$`)

// Parse decodes a line. ok is false for lines that are no event.
func Parse(line string) (e Event, ok bool) {
	if len(line) < nameWidth {
		return Event{}, false
	}
	m := eventLine.FindStringSubmatch(line[nameWidth:])
	if m == nil {
		return Event{}, false
	}
	e = Event{Name: m[1], Fields: map[string]string{}}
	for word := range strings.FieldsSeq(m[2]) {
		if name, value, named := strings.Cut(word, "="); named {
			e.Fields[name] = value
		} else {
			e.Words = append(e.Words, word)
		}
	}
	return e, true
}

// Lost returns the number of events that were lost, if the line says so.
func Lost(line string) int {
	m := lostLine.FindStringSubmatch(line)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return 0
	}
	return n
}
