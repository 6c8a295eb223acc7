// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// ClearScreen puts the cursor in the upper left corner of an empty terminal.
const ClearScreen = "\x1b[H\x1b[2J"

// Watch is the option --watch N, which repeats a listing every N seconds until the command is interrupted.
type Watch struct {
	// Every is the time from the end of one round to the next; 0 shows the listing once.
	Every time.Duration
	// Wait waits for a duration or the end of the context; nil means a real timer. Tests replace it.
	Wait func(ctx context.Context, d time.Duration) error
}

// AddFlag declares the option.
func (w *Watch) AddFlag(fs *pflag.FlagSet) {
	AddSecondsFlag(fs, &w.Every, "watch", "repeat every `SECONDS` until interrupted; with --json one line per round")
}

// On reports whether the option was given.
func (w *Watch) On() bool { return w.Every > 0 }

// Run calls round once, or repeatedly if the option was given. Between rounds it clears a terminal, and writes separator to
// other outputs.
func (w *Watch) Run(ctx context.Context, env *Env, separator string, round func() error) error {
	for n := 0; ; n++ {
		switch {
		case !w.On():
		case env.Terminal && separator != "":
			fmt.Fprint(env.Out, ClearScreen)
		case n > 0:
			fmt.Fprint(env.Out, separator)
		}
		if err := round(); err != nil || !w.On() {
			return err
		}
		if err := env.Flush(); err != nil {
			return err
		}
		if err := w.wait(ctx); err != nil {
			return err
		}
	}
}

// List is Run for a listing: a blank line separates the rounds, and nothing does if they are documents of JSON.
func (w *Watch) List(ctx context.Context, env *Env, json bool, round func() error) error {
	separator := "\n"
	if json {
		separator = ""
	}
	return w.Run(ctx, env, separator, round)
}

// WriteJSON prints the document of a round: on one line if others follow.
func (w *Watch) WriteJSON(env *Env, doc any) error {
	if w.On() {
		return env.WriteJSONLine(doc)
	}
	return env.WriteJSON(doc)
}

func (w *Watch) wait(ctx context.Context) error {
	if w.Wait != nil {
		return w.Wait(ctx, w.Every)
	}
	t := time.NewTimer(w.Every)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
