// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPeersAbort has a peer abort a connection on which an application has just written something that was held back, as it has
// announced more. Once our module has said that it writes no more, the peer may give its RMB to another connection: so that
// stays as it is, although the application goes on.
func TestPeersAbort(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	g := newGroup(t, n, address(12, 1), true)
	first, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.hangUp()
	held, parted := make(chan error, 1), make(chan struct{})
	c := g.conn()
	c.use = func(a *app, fd int) {
		defer close(a.done)
		defer unix.Close(fd)
		held <- unix.Sendto(fd, []byte("for nobody else"), unix.MSG_MORE, nil)
		<-parted
		a.err = unix.Sendto(fd, []byte("any more"), unix.MSG_NOSIGNAL, nil)
	}
	if err := inTurn(ctx, c.begin, c.confirm, c.settle); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	err = c.tell(ctx, aborted)
	if err == nil {
		err = g.until(ctx, "abort", func() bool { return c.theirState&stateAbort != 0 })
	}
	late := c.theirProd == 0 && bytes.Equal(c.rmb.Bytes, make([]byte, len(c.rmb.Bytes)))
	close(parted)
	if err := errors.Join(err, c.app.wait(ctx)); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.app.err, unix.ECONNRESET) && !errors.Is(c.app.err, unix.EPIPE) {
		t.Errorf("the application hears of %v", c.app.err)
	}
	// In the order of the link, this comes after whatever the application has caused.
	if err := first.exchange(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	if !late {
		t.Skip("too slow: what was held back has been sent before the connection was aborted")
	}
	if c.theirProd != 0 || !bytes.Equal(c.rmb.Bytes, make([]byte, len(c.rmb.Bytes))) {
		t.Errorf("our module has written to the RMB: %q", bytes.TrimRight(c.rmb.Bytes, "\x00"))
	}
}

// TestPeersAbandon has a client give up connections in the moment that our module expects it to write, and live on. It never
// heard of them, so it never says that it is done.
func TestPeersAbandon(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g := newGroup(t, n, address(12, 2), false)
	first, err := g.open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const some = 20
	if err := g.abandon(ctx, some); err != nil {
		t.Fatal(err)
	}
	if err := g.goesOn(ctx, first, some); err != nil {
		t.Error(err)
	}
}

// abandon has the peer give up connections, each with an RMB of its own, as all of them might be written to.
func (g *group) abandon(ctx context.Context, some int) error {
	for range some {
		c := g.conn()
		err := inTurn(ctx, c.begin, c.accepted, func(ctx context.Context) error { return resets(ctx, c) })
		if err != nil {
			return err
		}
	}
	return nil
}

// unforgetting makes a group with a connection, whose peer has given up others, and keeps its answers to so many DELETE RKEY.
func unforgetting(ctx context.Context, t *testing.T, n *network, addr netip.Addr, abandoned, requests int) (*group, *conn) {
	t.Helper()
	g := newGroup(t, n, addr, false)
	g.slow = true
	first, err := g.open(ctx)
	if err == nil {
		err = g.abandon(ctx, abandoned)
	}
	if err == nil {
		err = g.until(ctx, "DELETE RKEY", func() bool { return len(g.kept) == requests })
	}
	if err == nil {
		err = first.exchange(ctx, 1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, first
}

// TestPeersForgetLate has a peer answer no DELETE RKEY in time, as a slow one may. It keeps its link.
func TestPeersForgetLate(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	const some = 5
	g, first := unforgetting(ctx, t, n, address(12, 3), some, 3)
	g.mu.Lock()
	g.slow = false
	kept := g.kept
	g.mu.Unlock()
	err := g.says(ctx, kept...)
	if err == nil {
		err = g.goesOn(ctx, first, some)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestPeersForgetNever has a peer answer no DELETE RKEY at all. It loses its link, as we would have to keep all of its RMBs.
func TestPeersForgetNever(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*patience)
	defer cancel()
	const most = 8
	g, first := unforgetting(ctx, t, n, address(12, 4), most+1, most)
	defer first.hangUp()
	if err := first.app.wait(ctx); err != nil {
		t.Fatal(err)
	}
	if first.app.err == nil {
		t.Error("the application has heard of no error")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.kept) != most {
		t.Errorf("the group has ended after %d requests, not %d", len(g.kept), most)
	}
}

// TestPeersLoseRequest has a peer answer all DELETE RKEY at once but the first, which it has lost. As its answers name no keys, each
// may be to the request before. Our module finds out: the requests that it repeats then follow each other.
func TestPeersLoseRequest(t *testing.T) {
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	const some, mistaken = 5, 3
	g := newGroup(t, n, address(12, 5), false)
	g.lost = 1
	first, err := g.open(ctx)
	if err == nil {
		err = g.abandon(ctx, some)
	}
	requests := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			return g.until(ctx, "DELETE RKEY", func() bool { return len(g.forgot) >= n })
		}
	}
	if err == nil {
		err = inTurn(ctx, requests(1+mistaken), requests(some))
	}
	began := time.Now()
	if err == nil {
		err = inTurn(ctx, requests(some+mistaken), g.fresh, func(ctx context.Context) error { return first.exchange(ctx, 1000) }, first.close)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A request that times out takes 10 s.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the next requests took %v: the answers are still taken for others", took)
	}
}

// goesOn waits until our module has withdrawn so many keys, and checks that the group's connection works, and another one.
func (g *group) goesOn(ctx context.Context, first *conn, some int) error {
	forgotten := func(ctx context.Context) error {
		return g.until(ctx, "DELETE RKEY", func() bool {
			slices.Sort(g.forgot)
			return len(slices.Compact(g.forgot)) == some
		})
	}
	return inTurn(ctx, forgotten, g.fresh, func(ctx context.Context) error { return first.exchange(ctx, 1000) }, first.close)
}
