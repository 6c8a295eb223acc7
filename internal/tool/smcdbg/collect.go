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
	"sync"
	"time"

	"github.com/smckit/smckit/internal/cli"
)

// result is the outcome of reading a section.
type result struct {
	text string
	err  error
}

// collect reads all sections and passes them to a sink in their order. It lists sections that it could not read on standard
// error and in the last file. If ctx ends, this includes all remaining sections, and collect returns its error.
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
			o.env.Note("not collected: %s", line)
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

// hostNames returns the names to mask. If it cannot read them in time, it prints that names are not masked, and returns none.
func (o *options) hostNames(ctx context.Context) []string {
	r := o.await(ctx, section{"names", func(ctx context.Context) (string, error) {
		return strings.Join(o.deps.names(ctx), "\n"), nil
	}})
	if r.err != nil {
		o.env.Note("names of hosts are not masked: %v", r.err)
		return nil
	}
	return strings.Split(r.text, "\n")
}

// start starts to read all sections in their order, deps.atOnce of them in parallel. A section that takes longer than deps.turn no longer
// counts: if the kernel does not answer, many sections wait until their deadline, and use no processor. Each channel delivers one result.
func (o *options) start(ctx context.Context) []chan result {
	all := make([]chan result, len(o.deps.sections))
	for i := range all {
		all[i] = make(chan result, 1)
	}
	places := make(chan struct{}, o.deps.atOnce)
	go func() {
		for i, s := range o.deps.sections {
			places <- struct{}{}
			go func() {
				leave := sync.OnceFunc(func() { <-places })
				defer leave()
				defer time.AfterFunc(o.deps.turn, leave).Stop()
				all[i] <- o.await(ctx, s)
			}()
		}
	}()
	return all
}

// await reads a section and gives up after the timeout, even if the section ignores its context, as calls that wait in the
// kernel do.
func (o *options) await(ctx context.Context, s section) result {
	if ctx.Err() != nil {
		return result{err: ctx.Err()}
	}
	sctx, cancel := context.WithTimeout(ctx, o.deps.timeout)
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
	// A section that obeys its context may return text shortly after the timeout.
	grace := time.NewTimer(min(o.deps.timeout/4, time.Second))
	defer grace.Stop()
	select {
	case r := <-done:
		return r
	case <-grace.C:
		return result{err: fmt.Errorf("no answer: %w", sctx.Err())}
	}
}

// printSection reads a section and prints it, in a process that readByProcess has started.
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

// readByProcess reads a section in a separate process. A thread that hangs in the kernel cannot be killed, and would keep this
// process from ending.
func readByProcess(ctx context.Context, s section) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return s.read(ctx) // /proc is not mounted
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, self, "--section", s.name)
	cmd.Args[0] = "smc_dbg" // which makes smckit, too, run this command
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
