// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smckit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/smckit/smckit/internal/check"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// status is what the host does with SMC.
type status struct {
	host     *check.Snapshot
	findings []check.Finding
	// sockets is nil if the sockets are unknown.
	sockets *socketCounts
	// stats has no Snapshot if the counters are unknown.
	stats smcstats.Reading
	// unknown has a line for each fact that could not be read.
	unknown []string
}

// socketCounts counts AF_SMC sockets.
type socketCounts struct {
	total, listening int
	// modes counts the sockets that have or had a connection.
	modes map[netlinksmc.Mode]int
}

// status reads everything. It fails only if ctx ends. Without the module there are no sockets to count, and nothing is missing.
func (d deps) status(ctx context.Context) (*status, error) {
	host, err := d.read(ctx)
	if err != nil {
		return nil, err
	}
	s := &status{host: host, findings: host.Findings(), unknown: slices.Clone(host.Unknown)}
	if !host.Sockets.Available() && !host.Module.Loaded {
		return s, nil
	}
	if s.sockets, err = d.countSockets(ctx); err != nil {
		s.sockets, s.unknown = nil, append(s.unknown, fmt.Sprintf("sockets: %v", err))
	}
	if s.stats, err = d.stats(ctx); err != nil {
		s.unknown = append(s.unknown, fmt.Sprintf("statistics: %v", err))
	} else if s.stats.Note != nil {
		s.unknown = append(s.unknown, s.stats.Note.Error())
	}
	return s, ctx.Err()
}

// able reports whether the host can use SMC.
func (s *status) able() bool { return check.Able(s.findings) }

func (d deps) countSockets(ctx context.Context) (*socketCounts, error) {
	src, err := d.sockets()
	if err != nil {
		return nil, err
	}
	defer src.Close()
	n := &socketCounts{modes: map[netlinksmc.Mode]int{}}
	for sock, err := range src.Sockets(ctx, 0) {
		if err != nil && !errors.Is(err, netlinksmc.ErrDumpInterrupted) {
			return nil, err
		}
		if err != nil {
			continue // the list changed meanwhile: the counts are as good as any moment's
		}
		n.total++
		switch {
		case sock.State == netlinksmc.StateListen:
			n.listening++
		case sock.State == netlinksmc.StateInit || sock.State == netlinksmc.StateClosed:
		default:
			n.modes[sock.Mode]++
		}
	}
	return n, nil
}

// connections returns the number of connections that used SMC.
func (s *status) connections() uint64 {
	return smcstats.Connections(&s.stats.SMCR) + smcstats.Connections(&s.stats.SMCD)
}

// reasons returns how often connections fell back to TCP for each reason, in both roles, the most frequent ones first.
func (s *status) reasons() []netlinksmc.FallbackCount {
	var out []netlinksmc.FallbackCount
	for _, c := range slices.Concat(s.stats.Fallback.Client, s.stats.Fallback.Server) {
		at := slices.IndexFunc(out, func(o netlinksmc.FallbackCount) bool { return o.Reason == c.Reason })
		switch {
		case c.Count == 0:
		case at < 0:
			out = append(out, c)
		default:
			out[at].Count += c.Count
		}
	}
	slices.SortStableFunc(out, func(a, b netlinksmc.FallbackCount) int { return cmp.Compare(b.Count, a.Count) })
	return out
}
