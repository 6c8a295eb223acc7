// SPDX-License-Identifier: Apache-2.0

package unitfile

import (
	"fmt"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
)

// command is one command of a service, in the spelling of its unit file.
type command struct {
	// prefix has the characters before the path, except the @: argv0 is the word that it stands for then.
	prefix, argv0 string
	program       string
	args          []string
}

// commands splits a value of ExecStart= at semicolons.
func commands(value string) ([]command, error) {
	var list []command
	var line []string
	for _, w := range append(words(value), ";") {
		if w != ";" {
			line = append(line, w)
			continue
		}
		if len(line) == 0 {
			continue
		}
		c, err := parseCommand(line)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
		line = nil
	}
	return list, nil
}

func parseCommand(line []string) (command, error) {
	c := command{program: line[0], args: line[1:]}
	quote := ""
	if strings.HasPrefix(c.program, `"`) || strings.HasPrefix(c.program, "'") {
		quote = c.program[:1]
	}
	rest := strings.TrimLeft(c.program[len(quote):], "-@:+!|")
	c.prefix = strings.TrimSuffix(c.program[len(quote):], rest)
	c.program = quote + rest
	if strings.Contains(c.prefix, "|") {
		return c, remedy.Errorf("name the program instead", "the command %q is for a shell (prefix |)", strings.Join(line, " "))
	}
	if strings.Contains(c.prefix, "@") {
		c.prefix = strings.ReplaceAll(c.prefix, "@", "")
		if len(c.args) == 0 {
			return c, fmt.Errorf("the command %q has no word for the @: systemd refuses it", line[0])
		}
		c.argv0, c.args = c.args[0], c.args[1:]
	}
	return c, nil
}

// Path returns the path of the program, or "" if it depends on specifiers or has escapes.
func (c *command) path() string {
	path := strings.NewReplacer(`"`, "", "'", "", "%%", "\x00").Replace(c.program)
	if strings.ContainsAny(path, `%\`) {
		return ""
	}
	return strings.ReplaceAll(path, "\x00", "%")
}

// wrap returns the command line that has runner, a command and its options, run the program. The program's path becomes an argument: there,
// systemd expands variables, unless the prefix : forbids it.
func (c *command) wrap(runner []string) string {
	line := append([]string{c.prefix + runner[0]}, runner[1:]...)
	if c.argv0 != "" {
		line = append(line, "--argv0", c.argv0)
	}
	program := c.program
	if !strings.Contains(c.prefix, ":") {
		program = strings.ReplaceAll(program, "$", "$$")
	}
	return strings.Join(append(append(line, program), c.args...), " ")
}
