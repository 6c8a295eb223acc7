// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sync/errgroup"
)

// newcomers has hosts that our module does not know yet open their first connections, atOnce of them at a time, and use them.
// Return: how long the slowest has waited.
func newcomers(ctx context.Context, t testing.TB, n *peer.RoCENet, third byte, count, atOnce int) (time.Duration, error) {
	var longest atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error {
			begin := time.Now()
			if err := peer.NewLinkGroup(t, n, peer.Address(third, byte(i+1)), i%2 == 1).UseNewConn(ctx); err != nil {
				return fmt.Errorf("newcomer %d: %w", i, err)
			}
			took := int64(time.Since(begin))
			for old := longest.Load(); took > old && !longest.CompareAndSwap(old, took); old = longest.Load() {
			}
			return nil
		})
	}
	err := group.Wait()
	return time.Duration(longest.Load()), err
}

// stalledPeers has one peer for each way to fall silent in a handshake, and another one each time that our module gives one
// up.
type stalledPeers struct {
	group  errgroup.Group
	over   atomic.Bool
	silent atomic.Int32 // now
}

// stall starts the peers, and returns when all are silent.
func stall(ctx context.Context, t testing.TB, n *peer.RoCENet, third byte) (*stalledPeers, error) {
	c := &stalledPeers{}
	var kinds int32
	for i, b := range silences {
		if !b.handshake {
			continue
		}
		kinds++
		c.group.Go(func() error {
			for k := byte(1); !c.over.Load(); k++ {
				if err := c.one(ctx, b, peer.NewLinkGroup(t, n, peer.Address(third+byte(i), k), b.server)); err != nil {
					return fmt.Errorf("%s: %w", b.name, err)
				}
			}
			return nil
		})
	}
	for c.silent.Load() < kinds {
		if err := ctx.Err(); err != nil {
			return nil, errors.Join(err, c.end())
		}
		time.Sleep(time.Millisecond) // the condition is looked at again
	}
	return c, nil
}

func (c *stalledPeers) one(ctx context.Context, b silenceCase, g *peer.LinkGroup) error {
	ctx, cancel := context.WithTimeout(ctx, peer.Timeout)
	defer cancel()
	if b.further {
		before, err := g.Open(ctx)
		if err != nil {
			return fmt.Errorf("before: %w", err)
		}
		defer before.HangUp()
	}
	conn := g.NewConn()
	if err := b.until(ctx, conn); err != nil {
		return fmt.Errorf("before: %w", err)
	}
	c.silent.Add(1)
	defer c.silent.Add(-1)
	return b.rest(ctx, conn)
}

// end waits until our module has given up the last of them.
func (c *stalledPeers) end() error {
	c.over.Store(true)
	return c.group.Wait()
}

// TestStalledHandshakes has unknown hosts connect while others are silent at each step of their handshakes. No unknown host
// waits for a silent one.
func TestStalledHandshakes(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	count, atOnce, most := 50, 8, peer.Prompt
	if guest.Checked(t) {
		count, atOnce = 10, 1
		// With checkers, a handshake alone takes as long as a wait would: add it.
		alone, err := newcomers(ctx, t, n, 29, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		most += alone
	}
	silent, err := stall(ctx, t, n, 80)
	if err != nil {
		t.Fatal(err)
	}
	longest, err := newcomers(ctx, t, n, 30, count, atOnce)
	if err := errors.Join(err, silent.end()); err != nil {
		t.Error(err)
	}
	if longest > most {
		t.Errorf("a newcomer had to wait %v for its connection", longest)
	}
}

// BenchmarkSilence compares how long 100 hosts, one after the other, take for their first connections while others are silent
// with how long they take when none is. More than 1 is slower. All hosts are programs of this machine: several at a time would
// wait for its processors.
func BenchmarkSilence(b *testing.B) {
	n := peer.OpenRoCE(b)
	var ratios []float64
	third := byte(60)
	timed := func() float64 {
		begin := time.Now()
		third++
		if _, err := newcomers(b.Context(), b, n, third, 100, 1); err != nil {
			b.Fatal(err)
		}
		return time.Since(begin).Seconds()
	}
	for b.Loop() {
		quiet := timed()
		silent, err := stall(b.Context(), b, n, third+1)
		if err != nil {
			b.Fatal(err)
		}
		third += byte(len(silences))
		ratios = append(ratios, timed()/quiet)
		if err := silent.end(); err != nil {
			b.Error(err)
		}
	}
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-quiet")
}
