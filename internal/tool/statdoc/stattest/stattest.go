// SPDX-License-Identifier: Apache-2.0

// Package stattest has a baseline of statistics for tests.
package stattest

import (
	"context"
	"time"

	"github.com/smckit/smckit/pkg/smcstats"
)

// Memory keeps a baseline in memory, as *smcstats.Store does in a file.
type Memory struct {
	Base *smcstats.Snapshot
	// Taken is the time of the baseline.
	Taken time.Time
	// Note says why there is no baseline.
	Note error
	// Resets counts the calls of Reset.
	Resets int
}

// Reduce returns cur since the baseline.
func (m *Memory) Reduce(cur *smcstats.Snapshot) smcstats.Reading {
	if m.Base == nil {
		return smcstats.Reading{Snapshot: cur, Note: m.Note}
	}
	out, err := smcstats.Sub(cur, m.Base)
	if err != nil {
		return smcstats.Reading{Snapshot: cur, Note: err}
	}
	return smcstats.Reading{Snapshot: out, Since: m.Taken}
}

// Reset makes cur the baseline.
func (m *Memory) Reset(_ context.Context, cur *smcstats.Snapshot) error {
	m.Base = cur
	m.Resets++
	return nil
}
