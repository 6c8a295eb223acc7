// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

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
	for range some {
		c := g.conn()
		err := inTurn(ctx, c.begin, c.accepted, func(ctx context.Context) error { return resets(ctx, c) })
		if err != nil {
			t.Fatal(err)
		}
	}
	// Each has had an RMB of its own, as all of them might be written to.
	err = g.until(ctx, "DELETE RKEY", func() bool {
		slices.Sort(g.forgot)
		return len(slices.Compact(g.forgot)) == some
	})
	if err == nil {
		err = inTurn(ctx, g.fresh, func(ctx context.Context) error { return first.exchange(ctx, 1000) }, first.close)
	}
	if err != nil {
		t.Error(err)
	}
}
