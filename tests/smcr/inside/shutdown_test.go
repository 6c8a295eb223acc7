// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package inside has the tests that tests/smcr runs in guests. Elsewhere its tests are skipped.
package inside

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// shutdownGuest is made in a guest whose peers are connected with another guest. It contains that guest's hardware address, and how many
// link groups there are to be.
const shutdownGuest guest.Marker = "/run/smckit-shutdown"

// TestShutdown has peers form link groups with our module on another host. The test that has booted both shuts that host down once
// the groups exist. Each peer gets DELETE LINK (RFC 7609, 4.8.3).
func TestShutdown(t *testing.T) {
	shutdownGuest.Need(t)
	text, err := os.ReadFile(string(shutdownGuest))
	if err != nil {
		t.Fatal(err)
	}
	var host string
	var count int
	if _, err := fmt.Sscan(string(text), &host, &count); err != nil {
		t.Fatal(err)
	}
	n := bridged(t, host)
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	groups, err := form(ctx, n, count)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/run/formed", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	var ends []time.Time
	for _, g := range groups {
		if err := g.Until(ctx, "DELETE LINK", func() bool { return g.Gone }); err != nil {
			t.Fatalf("%s, after %d of %d groups: %v", g.Addr, len(ends), count, err)
		}
		g.Locked(func() { ends = append(ends, g.GoneAt) })
	}
	slices.SortFunc(ends, time.Time.Compare)
	guest.Run(t, fmt.Sprintf("echo %v >/run/deleted", ends[len(ends)-1].Sub(ends[0])))
}

// bridged makes a network of peers that is one Ethernet with the interface to the other host.
func bridged(t *testing.T, host string) *peer.RoCENet {
	t.Helper()
	mac, err := net.ParseMAC(host)
	if err != nil {
		t.Fatal(err)
	}
	n, err := peer.OpenTAP(peer.Device)
	if err != nil {
		t.Fatal(err)
	}
	n.SetKernel(mac)
	guest.Run(t, "ip addr flush dev eth0; ip link add br0 type bridge; "+
		"for d in eth0 "+peer.Device+"; do ip link set $d master br0; ip link set $d up; done; ip link set br0 up")
	return &peer.RoCENet{Net: n}
}

// form forms link groups, each of a peer with an address of its own. Adapters are fewer: each has a goroutine that looks at the clock.
func form(ctx context.Context, n *peer.RoCENet, count int) ([]*peer.LinkGroup, error) {
	const perAdapter = 100
	var groups []*peer.LinkGroup
	var a *peer.Adapter
	for i := range count {
		if i%perAdapter == 0 {
			a = peer.NewAdapter(n.Net, peer.Address(100, byte(1+i/perAdapter)))
		}
		groups = append(groups, peer.NewLinkGroupOn(n, a, peer.Address(byte(1+i/perAdapter), byte(1+i%perAdapter)), false))
	}
	forming, ctx := errgroup.WithContext(ctx)
	forming.SetLimit(4)
	for _, g := range groups {
		forming.Go(func() error {
			c := g.NewConn()
			gid := c.Local.Addr.As16()
			c.CorruptProposal = func(msg []byte) []byte { return peer.With(msg, peer.AtRoCEGID, gid[:]...) }
			if err := peer.InTurn(ctx, c.Begin, c.Confirm, c.Finish); err != nil {
				return fmt.Errorf("link group with %s: %w", g.Addr, err)
			}
			return nil
		})
	}
	return groups, forming.Wait()
}
