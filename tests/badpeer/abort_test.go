// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestAbortWhileWriting has a peer abort a connection while the application's last write is still held back by MSG_MORE. Once
// our module has announced that it writes no more, the peer may give its RMB to another connection. So our module must not
// write to that RMB, although the application goes on.
func TestAbortWhileWriting(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(12, 1), true)
	first, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer first.HangUp()
	held, parted := make(chan error, 1), make(chan struct{})
	c := g.NewConn()
	c.Use = func(a *guest.App, fd int) {
		defer close(a.Done)
		defer unix.Close(fd)
		held <- unix.Sendto(fd, []byte("for nobody else"), unix.MSG_MORE, nil)
		<-parted
		a.Err = unix.Sendto(fd, []byte("any more"), unix.MSG_NOSIGNAL, nil)
	}
	if err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish); err != nil {
		t.Fatal(err)
	}
	if err := <-held; err != nil {
		t.Fatal(err)
	}
	err = c.SendCDC(ctx, aborted)
	if err == nil {
		err = g.Until(ctx, "abort", func() bool { return c.RemoteState&peer.Aborted != 0 })
	}
	late := c.RemoteProd == 0 && bytes.Equal(c.RMB.Bytes, make([]byte, len(c.RMB.Bytes)))
	close(parted)
	if err := errors.Join(err, c.App.Wait(ctx)); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(c.App.Err, unix.ECONNRESET) && !errors.Is(c.App.Err, unix.EPIPE) {
		t.Errorf("the application gets %v", c.App.Err)
	}
	// The link keeps the order, so this arrives after what the application has caused.
	if err := first.Exchange(ctx, 1000); err != nil {
		t.Fatal(err)
	}
	if !late {
		t.Skip("too slow: what was held back has been sent before the connection was aborted")
	}
	if c.RemoteProd != 0 || !bytes.Equal(c.RMB.Bytes, make([]byte, len(c.RMB.Bytes))) {
		t.Errorf("our module has written to the RMB: %q", bytes.TrimRight(c.RMB.Bytes, "\x00"))
	}
}

// TestAbandonedConns has a client reset connections after our ACCEPT, and go on with others. Our server may write to the RMBs
// of those connections, and is never informed that the client has closed them.
func TestAbandonedConns(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*peer.Timeout)
	defer cancel()
	g := peer.NewLinkGroup(t, n, peer.Address(12, 2), false)
	first, err := g.Open(ctx)
	if err != nil {
		t.Fatal(err)
	}
	const some = 20
	if err := abandon(ctx, g, some); err != nil {
		t.Fatal(err)
	}
	if err := goesOn(ctx, g, first, some); err != nil {
		t.Error(err)
	}
}

// abandon has the peer reset connections after our ACCEPT. Each has an RMB of its own, since our module may write to all of
// them.
func abandon(ctx context.Context, g *peer.LinkGroup, some int) error {
	for range some {
		c := g.NewConn()
		err := peer.InTurn(ctx, c.Begin, c.RecvAccept, func(ctx context.Context) error { return resets(ctx, c) })
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutDeleteRkey makes a link group with one connection, whose peer has abandoned others, and withholds its responses to the
// first requests of DELETE RKEY.
func withoutDeleteRkey(ctx context.Context, t *testing.T, n *peer.RoCENet, addr netip.Addr, abandoned, requests int) (*peer.LinkGroup, *peer.Conn) {
	t.Helper()
	g := peer.NewLinkGroup(t, n, addr, false)
	g.KeepDeleteRkey = true
	first, err := g.Open(ctx)
	if err == nil {
		err = abandon(ctx, g, abandoned)
	}
	if err == nil {
		err = g.Until(ctx, "DELETE RKEY", func() bool { return len(g.Kept) == requests })
	}
	if err == nil {
		err = first.Exchange(ctx, 1000)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g, first
}

// TestDeleteRkeyLate has a slow peer that answers DELETE RKEY too late. It keeps its link.
func TestDeleteRkeyLate(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*peer.Timeout)
	defer cancel()
	const some = 5
	g, first := withoutDeleteRkey(ctx, t, n, peer.Address(12, 3), some, 3)
	var kept [][]byte
	g.Locked(func() { g.KeepDeleteRkey, kept = false, g.Kept })
	err := g.Send(ctx, kept...)
	if err == nil {
		err = goesOn(ctx, g, first, some)
	}
	if err != nil {
		t.Error(err)
	}
}

// TestDeleteRkeyNever has a peer that never answers DELETE RKEY. It loses its link, since our module could not reuse any of
// its RMBs.
func TestDeleteRkeyNever(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 8*peer.Timeout)
	defer cancel()
	const most = 8
	g, first := withoutDeleteRkey(ctx, t, n, peer.Address(12, 4), most+1, most)
	defer first.HangUp()
	if err := first.App.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	if first.App.Err == nil {
		t.Error("the application has got no error")
	}
	g.Locked(func() {
		if len(g.Kept) != most {
			t.Errorf("the group has ended after %d requests, not %d", len(g.Kept), most)
		}
	})
}

// TestDeleteRkeyLost has a peer lose the first DELETE RKEY and answer all others at once. Responses name no keys, so our
// module takes each for the response to the request before. It notices: the requests that it repeats then follow each other
// without delay.
func TestDeleteRkeyLost(t *testing.T) {
	n := peer.OpenRoCE(t)
	ctx, cancel := context.WithTimeout(t.Context(), 4*peer.Timeout)
	defer cancel()
	const some, mistaken = 5, 3
	g := peer.NewLinkGroup(t, n, peer.Address(12, 5), false)
	g.LoseDeleteRkey = 1
	first, err := g.Open(ctx)
	if err == nil {
		err = abandon(ctx, g, some)
	}
	requests := func(n int) func(context.Context) error {
		return func(ctx context.Context) error {
			return g.Until(ctx, "DELETE RKEY", func() bool { return len(g.DeletedRkeys) >= n })
		}
	}
	if err == nil {
		err = peer.InTurn(ctx, requests(1+mistaken), requests(some))
	}
	began := time.Now()
	if err == nil {
		err = peer.InTurn(ctx, requests(some+mistaken), g.UseNewConn, func(ctx context.Context) error { return first.Exchange(ctx, 1000) }, first.Close)
	}
	if err != nil {
		t.Fatal(err)
	}
	// A request that times out takes 10 s.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("the next requests took %v: the answers are still taken for others", took)
	}
}

// goesOn waits until our module has sent DELETE RKEY for this many keys, and checks that the group's connection works, and
// that another one does.
func goesOn(ctx context.Context, g *peer.LinkGroup, first *peer.Conn, some int) error {
	forgotten := func(ctx context.Context) error {
		return g.Until(ctx, "DELETE RKEY", func() bool {
			slices.Sort(g.DeletedRkeys)
			return len(slices.Compact(g.DeletedRkeys)) == some
		})
	}
	return peer.InTurn(ctx, forgotten, g.UseNewConn, func(ctx context.Context) error { return first.Exchange(ctx, 1000) }, first.Close)
}
