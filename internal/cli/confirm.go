// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	remedies "github.com/smckit/smckit/internal/remedy"
	"github.com/spf13/pflag"
)

// confirm is what Env.Confirm needs to know.
type confirm struct {
	// sub means that the tree under construction is that of a Sub, and asks that the running tool is one.
	sub, asks bool
	// yes is the option --yes.
	yes bool
}

// AddYesFlag declares the option --yes for a command that calls Confirm. Only a tool that is a command of another one has it: scripts
// that call a tool by its own name know neither the question nor the option.
func (e *Env) AddYesFlag(fs *pflag.FlagSet) {
	if e.confirm.sub {
		fs.BoolVar(&e.confirm.yes, "yes", false, "do not ask before something is deleted or switched off")
	}
}

// Asks reports whether Confirm would ask, for questions that cost something.
func (e *Env) Asks() bool { return e.confirm.asks && !e.confirm.yes }

// Confirm asks the user whether to go on with something that ends connections, or deletes what someone has set up. It returns nil if the
// answer is yes, and without asking if the option --yes is given, or if the tool has been called by its own name. Without an answer, it
// returns when ctx ends.
func (e *Env) Confirm(ctx context.Context, format string, args ...any) error {
	if !e.Asks() {
		return nil
	}
	question := OneLine(fmt.Sprintf(format, args...))
	if !e.Interactive {
		return remedies.Errorf("use --yes", "cannot ask whether to %s, since standard input is no terminal", question)
	}
	fmt.Fprintf(e.Err, "%s: %s? [y/N] ", e.Name(), question)
	answer, err := e.readAnswer(ctx)
	if !strings.HasSuffix(answer, "\n") {
		// The next message begins on a line of its own.
		fmt.Fprintln(e.Err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errors.New("the answer is no: nothing changed")
}

// readAnswer reads a line of standard input. A signal ends ctx, but not the reading of a terminal, which then goes on until the process ends.
func (e *Env) readAnswer(ctx context.Context) (string, error) {
	type result struct {
		line string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		line, err := bufio.NewReader(e.In).ReadString('\n')
		done <- result{line, err}
	}()
	select {
	case r := <-done:
		return r.line, r.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
