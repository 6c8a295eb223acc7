// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
)

// One-letter options of smc-tools: commands, and options with a value.
var (
	verbOptions  = map[byte]string{'a': "add", 'd': "delete", 's': "show", 'f': "flush"}
	valueOptions = map[byte]string{'I': "interface", 'D': "ibdevice", 'P': "ibport", 'N': "netns"}
)

// rewrite keeps a command line of smc-tools from being parsed as one of ours. Once a command is given as an option, words are
// operands, even if they look like a command ("-a SHOW -I eth0" adds the PNET ID SHOW). rewrite puts the options first, then
// "--", then the operands: every parser understands this order in the same way.
func rewrite(args []string) ([]string, error) {
	s := splitter{rest: args}
	for len(s.rest) > 0 {
		arg := s.next()
		switch {
		case arg == "--":
			s.operands = append(s.operands, s.rest...)
			s.rest = nil
		case strings.HasPrefix(arg, "--"):
			s.long(arg)
		case len(arg) > 1 && arg[0] == '-':
			s.short(arg)
		default:
			s.operands = append(s.operands, arg)
		}
	}
	switch {
	case !s.verb:
		return args, nil
	case s.missing != "":
		// Otherwise the option would take the "--" as its value.
		return nil, cli.Usagef("flag needs an argument: %s", s.missing)
	}
	return slices.Concat(s.options, []string{"--"}, s.operands), nil
}

// splitter separates options from operands.
type splitter struct {
	rest              []string
	options, operands []string
	// verb reports whether one of the options is a command.
	verb bool
	// missing is the last option, if its value is missing.
	missing string
}

func (s *splitter) next() string {
	arg := s.rest[0]
	s.rest = s.rest[1:]
	return arg
}

// value takes the word after option as its value.
func (s *splitter) value(option string) {
	if len(s.rest) == 0 {
		s.missing = option
		return
	}
	s.options = append(s.options, s.next())
}

// long takes a long option, which may be abbreviated, and its value.
func (s *splitter) long(arg string) {
	name, _, hasValue := strings.Cut(arg[2:], "=")
	s.options = append(s.options, arg)
	for _, verb := range verbOptions {
		s.verb = s.verb || name != "" && strings.HasPrefix(verb, name)
	}
	for _, option := range valueOptions {
		if !hasValue && name != "" && strings.HasPrefix(option, name) {
			s.value(arg)
			return
		}
	}
}

// short takes a cluster of options of one letter, the last of which may have its value in the next word.
func (s *splitter) short(arg string) {
	s.options = append(s.options, arg)
	for i := 1; i < len(arg); i++ {
		if valueOptions[arg[i]] != "" {
			if i == len(arg)-1 {
				s.value(arg)
			}
			return
		}
		s.verb = s.verb || verbOptions[arg[i]] != ""
	}
}
