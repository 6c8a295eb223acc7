// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// handshakesPerCPU is how many handshakes per processor a server may have under way when they are limited.
const handshakesPerCPU = 8

// The socket option that limits the handshakes of one listener.
const (
	solSMC  = 286
	limitHS = 1
)

// TestHandshakeLimit has as many silent clients as a server with a handshake limit takes. The next client gets TCP, until one
// of the others is gone. Without the limit, the server promises SMC to it.
func TestHandshakeLimit(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	for i, c := range []struct {
		name    string
		limit   func(t *testing.T, listener int)
		limited bool
	}{
		{"off", func(*testing.T, int) {}, false},
		{"net.smc.limit_smc_hs", func(t *testing.T, _ int) { guest.NullGuest.Set(t, "net.smc.limit_smc_hs", "1") }, true},
		{"smcr handshake-limit", func(t *testing.T, _ int) {
			guest.Run(t, "smcr handshake-limit enable")
			t.Cleanup(func() { guest.Run(t, "smcr handshake-limit disable") })
		}, true},
		{"SMC_LIMIT_HS", func(t *testing.T, listener int) {
			if err := unix.SetsockoptInt(listener, solSMC, limitHS, 1); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := netip.AddrPortFrom(service.Addr(), uint16(7060+i))
			e := guest.NewEcho(t, addr, 1024)
			t.Cleanup(func() { e.Close(t) })
			c.limit(t, e.FD)
			handshakeLimit(t, n, addr, byte(50+i), c.limited)
		})
	}
}

// handshakeLimit checks whether a server promises SMC to one more client than the limit allows.
func handshakeLimit(t *testing.T, n *peer.Net, addr netip.AddrPort, third byte, limited bool) {
	t.Helper()
	ctx := handshakeContext(t)
	sessions := 0
	next := func() *tcpSession {
		sessions++
		return newTCPSession(ctx, t, n, third, sessions, addr)
	}
	var silent []*tcpSession
	for i := range handshakesPerCPU * runtime.NumCPU() {
		s := next()
		if err := smc(s); err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		silent = append(silent, s)
	}
	// A handshake counts from when its worker has begun it, until the worker has seen its end.
	promised := func(want bool) *tcpSession {
		t.Helper()
		var s *tcpSession
		guest.Await(t, promptTCP, func() string {
			s = next()
			if err := halfOpen(peer.Option)(s); err != nil {
				t.Fatal(err)
			}
			if got := agreed(s) == nil; got != want {
				return fmt.Sprintf("beside %d silent clients, one more is promised SMC: %v", len(silent), got)
			}
			return ""
		})
		return s
	}
	if !limited {
		s := promised(true)
		if err := errors.Join(ack(s), putHello(0, dec1)(s), s.talk()); err != nil {
			t.Errorf("the client beside %d silent ones: %v", len(silent), err)
		}
		return
	}
	s := promised(false)
	if err := errors.Join(ack(s), s.talk()); err != nil {
		t.Errorf("the client that was refused SMC is not served by TCP: %v", err)
	}
	last := silent[len(silent)-1]
	silent = silent[:len(silent)-1]
	if err := last.Put(last.Segment(peer.RST | peer.ACK)); err != nil {
		t.Fatal(err)
	}
	promised(true)
}
