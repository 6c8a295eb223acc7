// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/catalogue"
	"github.com/spf13/cobra"
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

// Note prints a line on standard error, behind the name of the tool: a remark, which does not change the exit status, or an error. Where
// the line quotes a command, that has the name by which the user has called it.
func (e *Env) Note(format string, args ...any) {
	fmt.Fprintf(e.Err, "%s: %s\n", e.called, e.hints.error(OneLine(fmt.Sprintf(format, args...))))
}

// Operation returns what a message calls the operation that word asks of cmd. A message begins with the name of the tool: Operation has
// only the words after that, "link delete" for a user of 'smcr link delete', and "delete" for one of 'smckit links delete'.
func (e *Env) Operation(cmd *cobra.Command, word string) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), e.called) + " " + word)
}

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
