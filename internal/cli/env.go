// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"io"
	"os"
	"strconv"

	"github.com/smckit/smckit/internal/catalogue"
	"golang.org/x/term"
)

// Env contains everything that a command uses of its process. Commands use an Env instead of package os, so that tests can run
// them in memory.
type Env struct {
	// In is standard input.
	In io.Reader
	// Out is standard output. Run makes it buffered and reports a failed write once, at the end.
	Out io.Writer
	// Err is standard error, never buffered.
	Err io.Writer
	// Terminal reports whether Out is a terminal.
	Terminal bool
	// Interactive reports whether In is a terminal.
	Interactive bool
	// Getenv reads an environment variable.
	Getenv func(string) string
	// EnterNetNS continues the command inside the named network namespace; see EnterNetNS. It does not return on
	// success.
	EnterNetNS func(name string) error
	// Explain returns an error with the reason and the remedy that fit this host. nil leaves errors as they are.
	Explain func(err error) error

	buf    *bufio.Writer
	output *output
	// called is the name of the running tool as the user has called it.
	called string
	// hints replaces names of commands in errors by those that the user knows.
	hints hints
	// confirm is the state of Confirm.
	confirm confirm
	// schema is the number of the JSON documents that --json asks for, 0 without the option.
	schema int
}

// System returns the Env of the running process.
func System() *Env {
	return &Env{
		In:         os.Stdin,
		Out:        os.Stdout,
		Err:        os.Stderr,
		Terminal:   term.IsTerminal(int(os.Stdout.Fd())),
		Getenv:     os.Getenv,
		EnterNetNS: EnterNetNS,
		Explain:    catalogue.Explain,

		Interactive: term.IsTerminal(int(os.Stdin.Fd())),
	}
}

// Name returns the name of the running tool as the user has called it, such as "smc_run" or "smckit run", for messages.
func (e *Env) Name() string { return e.called }

// Width returns the number of columns that output may use: $COLUMNS if it is a positive number, else 80.
func (e *Env) Width() int {
	if n, err := strconv.Atoi(e.Getenv("COLUMNS")); err == nil && n > 0 {
		return n
	}
	return 80
}

// Flush writes out what Out has buffered. A command that prints more than once over time (--watch) calls it after each
// round; Run calls it at the end.
func (e *Env) Flush() error {
	if e.buf == nil {
		return nil
	}
	e.output.pending = false
	return e.buf.Flush()
}
