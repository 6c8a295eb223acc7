// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/smctrace"
)

// monitor is a run of the command.
type monitor struct {
	env     *cli.Env
	deps    deps
	printer printer

	kernel kernel
	state  state
	// traced reports whether fallbacks come from the tracer.
	traced bool
	tracer *tracer
	// hangup is that of the tracer's source, nil without a tracer.
	hangup <-chan os.Signal
	// traceErr is why the tracer has ended. Its reader sets it before it closes the channel of lines.
	traceErr error
}

// settle is how long the command waits after a hint before it lists the objects: an event is reported before the listings have it, and
// several come at a time.
const settle = 100 * time.Millisecond

// errHangup ends the command when its terminal has gone.
var errHangup = errors.New("ended by SIGHUP")

// run prints events until ctx ends.
func (m *monitor) run(ctx context.Context, interval time.Duration) error {
	var err error
	if m.kernel, err = m.deps.open(ctx); err != nil {
		return err
	}
	defer m.kernel.Close()
	lines, stop := m.startTrace(ctx)
	defer stop()
	for complete := false; !complete; {
		if m.state, complete, err = readState(ctx, m.kernel, m.deps.ifName); err != nil {
			return err
		}
	}
	hints := m.deps.hints(ctx)
	ticks, stopTicks := m.deps.tick(interval)
	defer stopTicks()
	var settled <-chan time.Time
	for {
		look := false
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, open := <-lines:
			if !open {
				lines = nil
				err = m.endTrace(ctx)
				break
			}
			look, err = m.line(line)
		case <-m.hangup:
			return errHangup
		case <-hints:
			look = true
		case <-settled:
			settled = nil
			err = m.look(ctx)
		case <-ticks:
			err = m.look(ctx)
		}
		if err != nil {
			return err
		}
		if look && settled == nil {
			settled = m.deps.after(settle)
		}
	}
}

// look lists the objects and prints what has changed.
func (m *monitor) look(ctx context.Context) error {
	next, complete, err := readState(ctx, m.kernel, m.deps.ifName)
	if err != nil || !complete {
		return err // the next listing finds what this one has missed
	}
	events := m.state.changes(&next)
	if !m.traced {
		events = append(events, m.state.fallbackChanges(&next)...)
	}
	m.state = next
	return m.printer.print(events...)
}

// line prints the event of a line of the trace. look reports whether to list the objects.
func (m *monitor) line(text string) (look bool, err error) {
	if n := smctrace.Lost(text); n > 0 {
		m.note("%d events were lost, because too many came at a time", n)
		return true, nil
	}
	e, ok := smctrace.Parse(text)
	if !ok {
		return false, nil
	}
	event, ok, look := m.tracer.event(e)
	if !ok {
		return look, nil
	}
	return look, m.printer.print(event)
}

// startTrace starts the tracer if its events are asked for. The channel gets its lines, and is closed when it ends. stop removes it.
func (m *monitor) startTrace(ctx context.Context) (lines <-chan string, stop func()) {
	if !m.printer.objects[objFallback] && !m.printer.objects[objLink] {
		return nil, func() {}
	}
	source, err := m.deps.trace()
	var cookie uint64
	if err == nil {
		if cookie, err = m.deps.cookie(); err != nil {
			err = errors.Join(err, source.close())
		}
	}
	if err != nil {
		m.note("fallbacks are counted, and causes of failed links are not shown: %s", untraceable(err))
		return nil, func() {}
	}
	m.hangup = source.hangup
	m.traced, m.tracer = true, newTracer(cookie, source.events)
	ctx, cancel := context.WithCancel(ctx)
	ch := make(chan string)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(ch)
		m.traceErr = source.lines(ctx, func(line string) {
			select {
			case ch <- line:
			case <-ctx.Done():
			}
		})
	})
	return ch, func() {
		cancel()
		reader.Wait()
		if err := source.close(); err != nil {
			m.note("cannot remove the trace instance: %v", err)
		}
	}
}

// endTrace goes on with counters after the tracer has ended.
func (m *monitor) endTrace(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	m.note("the tracer has ended (%v): fallbacks are counted from now on", m.traceErr)
	m.traced = false
	return nil
}

// untraceable explains why the tracer cannot be used.
func untraceable(err error) string {
	if errors.Is(err, fs.ErrPermission) {
		return "only root may use the tracer"
	}
	return fmt.Sprintf("the tracer cannot be used: %v", err)
}

func (m *monitor) note(format string, args ...any) {
	m.env.Note("note: "+format, args...)
}
