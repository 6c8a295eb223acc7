// SPDX-License-Identifier: Apache-2.0

// Package smcstats collects the statistics of AF_SMC, subtracts a baseline from them, and keeps such baselines.
//
// The kernel cannot reset its counters. A reset therefore stores their values, private to a user, and later readings are
// compared with these values. Gauges (the memory of the ring buffers that are in use now) have no baseline: they are passed
// through untouched and never compared.
package smcstats

import (
	"context"
	"errors"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// Source reads the counters; *netlinksmc.Client is one.
type Source interface {
	Stats(ctx context.Context) (*netlinksmc.Stats, error)
	FallbackStats(ctx context.Context) (*netlinksmc.FallbackStats, error)
}

// Snapshot is one reading of all statistics of a network namespace, or the difference of two.
type Snapshot struct {
	netlinksmc.Stats
	Fallback netlinksmc.FallbackStats
}

// Collect reads all statistics. The two dumps it takes are not atomic: a connection that ends between them is in one
// and not in the other. Errors are those of the source; netlinksmc.ErrDumpInterrupted comes together with the result.
func Collect(ctx context.Context, src Source) (*Snapshot, error) {
	stats, err := src.Stats(ctx)
	if err != nil {
		return nil, err
	}
	fallback, err := src.FallbackStats(ctx)
	if err != nil && !errors.Is(err, netlinksmc.ErrDumpInterrupted) {
		return nil, err
	}
	return &Snapshot{Stats: *stats, Fallback: *fallback}, err
}

// Connections is the number of connections of one technology that became SMC connections.
func Connections(t *netlinksmc.TechStats) uint64 {
	return t.ClientV1 + t.ClientV2 + t.ServerV1 + t.ServerV2
}

// SpecialCalls is the number of socket calls that SMC handles specially: TCP_CORK, TCP_NODELAY, sendpage, splice, urgent data.
func SpecialCalls(t *netlinksmc.TechStats) uint64 {
	return t.Cork + t.NoDelay + t.Sendpage + t.Splice + t.Urgent
}

// HandshakeErrors is the number of failed handshakes of both technologies and roles.
func (s *Snapshot) HandshakeErrors() uint64 {
	return s.ClientHandshakeErrors + s.ServerHandshakeErrors
}

// Fallbacks is the number of connections of both roles that fell back to TCP.
func (s *Snapshot) Fallbacks() uint64 { return s.Fallback.ClientTotal + s.Fallback.ServerTotal }
