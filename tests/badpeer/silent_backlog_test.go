// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sync/errgroup"
)

// TestSilentBacklog fills a small backlog with silent clients. Others are served as soon as those are dropped, so each has
// been counted once in, and once out.
func TestSilentBacklog(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	small := netip.AddrPortFrom(service.Addr(), 7401)
	e := guest.NewEcho(t, small, 2)
	defer e.Close(t)
	var group errgroup.Group
	for i := range 12 {
		group.Go(func() error { return silent(n.NewTCP(address(false, 10, i)), small) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := guest.Ask(small, "after the silent ones", promptTCP); err != nil {
			t.Fatal(err)
		}
	}
}

// silent connects and stays silent until it is dropped, or for the time of a handshake if the server does not take the
// connection.
func silent(p *peer.TCP, to netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(context.Background(), handshakeWait+time.Second)
	defer cancel()
	err := p.Connect(ctx, to, append(append([]byte{}, peer.MSS...), peer.Option...))
	if err == nil {
		err = p.Ended(ctx)
	}
	if err != nil && ctx.Err() == nil {
		return err
	}
	return p.Put(p.Segment(peer.RST | peer.ACK))
}
