// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Grammar is the form of a command in words, as the designers of AF_SMC wrote it into /proc/net/smc/pnet_conf.
const Grammar = "add|del <PNET ID> eth|ib <device> [<port>]"

// Command is a parsed command of Grammar.
type Command struct {
	// Delete is true for "del", and false for "add".
	Delete bool
	// Entry is the entry to add or delete. With "del" it may have no device, which means the whole PNET ID, and its Port may
	// be 0, which means that none was given.
	Entry Entry
}

// Position is a place in a text.
type Position struct {
	// File is the name of the file, if it has one.
	File string
	// Line and Col count from 1, Col in bytes. They are 0 in arguments that came as separate words.
	Line, Col int
}

// String returns file:line:column, without unknown parts.
func (p Position) String() string {
	s := fmt.Sprintf("%d:%d", p.Line, p.Col)
	if p.File != "" {
		s = p.File + ":" + s
	}
	return s
}

// ParseError is a text that does not follow the grammar, or a table file that contradicts itself.
type ParseError struct {
	Position
	// Other is the place of the entry that this one repeats or contradicts; zero if it does not.
	Other Position
	// Err is the mistake; it may be an *InvalidError.
	Err error
}

// Error returns one line: file:line:column, if known, and the mistake.
func (e *ParseError) Error() string {
	if e.Line == 0 {
		return e.Err.Error()
	}
	return e.Position.String() + ": " + e.Err.Error()
}

// Unwrap returns Err.
func (e *ParseError) Unwrap() error { return e.Err }

// word is a word of a text and the place where it starts.
type word struct {
	text string
	pos  Position
}

// errorf reports a mistake at the word.
func (w word) errorf(format string, args ...any) error { return w.error(fmt.Errorf(format, args...)) }

func (w word) error(err error) error { return &ParseError{Position: w.pos, Err: err} }

// ParseArgs parses a command that comes in words, such as the arguments of a program, so that a device name may begin with
// '#'. The error is a *ParseError without a position.
func ParseArgs(args []string) (Command, error) {
	words := make([]word, len(args))
	for i, a := range args {
		words[i].text = a
	}
	return parseWords(words, word{})
}

// parseWords parses a command. end is the place to report when a word is missing.
func parseWords(words []word, end word) (Command, error) {
	var c Command
	if len(words) == 0 {
		return c, end.errorf("a command is missing: %s", Grammar)
	}
	switch verb := words[0]; verb.text {
	case "add":
	case "del":
		c.Delete = true
	default:
		return c, verb.errorf("unknown word %s: a command is %s", smcerr.Quote(verb.text), Grammar)
	}
	words = words[1:]

	if len(words) == 0 {
		return c, end.errorf("the PNET ID is missing: %s", Grammar)
	}
	id, err := ParseID(words[0].text)
	if err != nil {
		return c, words[0].error(err)
	}
	c.Entry.ID = id
	if c.Delete && len(words) == 1 {
		return c, nil
	}
	return c, c.parseDevice(words[1:], end)
}

// parseDevice parses the words after the PNET ID: eth|ib <device> [<port>].
func (c *Command) parseDevice(words []word, end word) error {
	if len(words) == 0 {
		return end.errorf("the kind of device is missing, 'eth' or 'ib': %s", Grammar)
	}
	kind := words[0]
	if kind.text != "eth" && kind.text != "ib" {
		return kind.errorf("unknown kind of device %s, 'eth' or 'ib' is needed", smcerr.Quote(kind.text))
	}
	if len(words) == 1 {
		return end.errorf("the name of the device is missing: %s", Grammar)
	}
	name, rest := words[1], words[2:]
	if kind.text == "eth" {
		if err := checkEth(name.text); err != nil {
			return name.error(err)
		}
		c.Entry.Eth = name.text
		if len(rest) > 0 {
			return rest[0].errorf("unexpected word %s: a network interface has no port", smcerr.Quote(rest[0].text))
		}
		return nil
	}
	if err := checkIB(name.text); err != nil {
		return name.error(err)
	}
	c.Entry.IB = name.text
	return c.parsePort(rest)
}

func (c *Command) parsePort(words []word) error {
	switch {
	case len(words) > 1:
		return words[1].errorf("unexpected word %s after the port", smcerr.Quote(words[1].text))
	case len(words) == 1:
		port, err := ParsePort(words[0].text)
		if err != nil {
			return words[0].error(err)
		}
		c.Entry.Port = port
	case !c.Delete:
		c.Entry.Port = DefaultPort
	}
	return nil
}

// ParsePort parses the port of an RDMA device, 1 or 2. The error is an *InvalidError.
func ParsePort(s string) (uint8, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	reason := portRule
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		reason = "not a number, " + portRule
	case err == nil && 1 <= n && n <= MaxPort && !strings.HasPrefix(s, "0"):
		return uint8(n), nil
	}
	return 0, &InvalidError{What: "port", Value: s, Reason: reason}
}
