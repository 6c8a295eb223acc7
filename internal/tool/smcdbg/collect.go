// SPDX-License-Identifier: Apache-2.0

package smcdbg

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/smckit/smckit/internal/cli"
)

// atOnce is how many sections are read at once: if the kernel does not answer, many of them take until their deadline.
const atOnce = 8

// result is what has come of a section.
type result struct {
	text string
	err  error
}

// collect reads all sections and gives them to a sink, in their order. What is missing is the last file, and on standard error. If
// ctx ends, that is all that is still missing, and the error.
func (o *options) collect(ctx context.Context, to sink) error {
	m := &masker{all: o.mask}
	if o.mask {
		m.names = o.hostNames(ctx)
	}
	var missing strings.Builder
	for i, pending := range o.start(ctx) {
		name := o.deps.sections[i].name
		r := <-pending
		if r.err != nil {
			line := m.mask(fmt.Sprintf("%s: %s", name, cli.OneLine(r.err.Error())))
			missing.WriteString(line + "\n")
			fmt.Fprintf(o.env.Err, "smc_dbg: not collected: %s\n", line)
		}
		if r.text != "" {
			if err := to.add(name, m.mask(r.text)); err != nil {
				return err
			}
		}
	}
	if missing.String() != "" {
		if err := to.add("missing.txt", missing.String()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// hostNames returns the names to mask. Without them, if they do not come in time, names are left as they are, and that is said.
func (o *options) hostNames(ctx context.Context) []string {
	r := o.await(ctx, section{"names", func(ctx context.Context) (string, error) {
		return strings.Join(o.deps.names(ctx), "\n"), nil
	}})
	if r.err != nil {
		fmt.Fprintf(o.env.Err, "smc_dbg: names of hosts are not masked: %s\n", cli.OneLine(r.err.Error()))
		return nil
	}
	return strings.Split(r.text, "\n")
}

// start starts reading all sections, some at once. Each channel brings one result.
func (o *options) start(ctx context.Context) []<-chan result {
	places := make(chan struct{}, atOnce)
	all := make([]<-chan result, len(o.deps.sections))
	for i, s := range o.deps.sections {
		one := make(chan result, 1)
		all[i] = one
		go func() {
			places <- struct{}{}
			defer func() { <-places }()
			one <- o.await(ctx, s)
		}()
	}
	return all
}

// await reads a section and gives it up if it takes too long, whether or not it heeds its context: what waits in the kernel
// does not.
func (o *options) await(ctx context.Context, s section) result {
	if ctx.Err() != nil {
		return result{err: ctx.Err()}
	}
	sctx, cancel := context.WithTimeout(ctx, o.deps.patience)
	defer cancel()
	done := make(chan result, 1)
	go func() {
		text, err := o.deps.read(sctx, s)
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r
	case <-sctx.Done():
	}
	// Something that does heed it may have text by now.
	grace := time.NewTimer(min(o.deps.patience/4, time.Second))
	defer grace.Stop()
	select {
	case r := <-done:
		return r
	case <-grace.C:
		return result{err: fmt.Errorf("no answer: %w", sctx.Err())}
	}
}

// printSection is what a process does that was started to read a section.
func (o *options) printSection(ctx context.Context) error {
	for _, s := range append(o.deps.sections, section{"names", func(ctx context.Context) (string, error) {
		return strings.Join(o.deps.names(ctx), "\n"), nil
	}}) {
		if s.name != o.section {
			continue
		}
		text, err := s.read(ctx)
		if _, werr := fmt.Fprint(o.env.Out, text); werr != nil {
			return werr
		}
		return err
	}
	return cli.Usagef("section %q does not exist", o.section)
}

// readByProcess reads a section in a process of its own. A thread that hangs in the kernel cannot be killed, and a process with
// such a thread does not end: this one shall.
func readByProcess(ctx context.Context, s section) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return s.read(ctx) // there is no /proc
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "--section", s.name)
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	text := strings.TrimSpace(strings.TrimPrefix(errs.String(), "smc_dbg: "))
	var exit *exec.ExitError
	switch {
	case err == nil:
		return out.String(), nil
	case ctx.Err() != nil:
		return out.String(), ctx.Err()
	case errors.As(err, &exit) && text != "":
		return out.String(), errors.New(text)
	}
	return out.String(), err
}
