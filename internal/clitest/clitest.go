// SPDX-License-Identifier: Apache-2.0

// Package clitest has what tests of commands need to run them in memory.
package clitest

import (
	"bytes"
	"errors"
	"strings"

	"github.com/smckit/smckit/internal/cli"
)

// Env returns the environment of a command that has the variables vars, and its outputs. Standard input is empty and no terminal. A command
// that enters a network namespace fails.
func Env(vars map[string]string) (env *cli.Env, out, stderr *bytes.Buffer) {
	out, stderr = new(bytes.Buffer), new(bytes.Buffer)
	return &cli.Env{
		In: strings.NewReader(""), Out: out, Err: stderr,
		Getenv:     func(name string) string { return vars[name] },
		EnterNetNS: func(name string) error { return errors.New("entered " + name) },
	}, out, stderr
}
