// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// TestSlowProposal has clients send PROPOSAL byte by byte. Connections of plain TCP do not wait for them. An emulated guest
// has pauses in which all bytes have been read, so the test may pass where connections do wait.
func TestSlowProposal(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	addr := netip.AddrPortFrom(service.Addr(), 7040)
	l, err := guest.Listen(addr, 64)
	if err != nil {
		t.Fatal(err)
	}
	// TCP then does not wake our module, which looks for data now and then, and finds some nearly each time.
	if err := unix.SetsockoptInt(l, unix.SOL_SOCKET, unix.SO_RCVLOWAT, 50); err != nil {
		t.Fatal(err)
	}
	e := guest.ServeEcho(t, l)
	t.Cleanup(func() { e.Close(t) })
	ctx := handshakeContext(t)
	// A byte every ten milliseconds is enough for as long as a handshake may take.
	const connections = 5
	slow := append(peer.Resize(d1, 640), make([]byte, 640-len(d1))...)
	over := make(chan error, 16)
	for i := range cap(over) {
		s := newTCPSession(ctx, t, n, 32, i, addr)
		if err := steps(smc, put(slow[:1]))(s); err != nil {
			t.Fatal(err)
		}
		go func() { over <- s.drip(slow[1:]) }()
	}
	for i := range connections {
		if err := askTCP(addr, "plain TCP that is longer than the low-water mark of the server's sockets", promptTCP); err != nil {
			t.Fatalf("plain TCP connection %d: %v", i, err)
		}
	}
	select {
	case err := <-over:
		t.Errorf("a handshake ended before %d connections were accepted: %v", connections, err)
	default:
	}
	for range cap(over) {
		<-over
	}
}

// drip sends a byte every ten milliseconds, except the last one, until the kernel ends the connection.
func (s *tcpSession) drip(data []byte) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, b := range data[:len(data)-1] {
		if err := s.Push(s.Segment(peer.ACK|peer.PSH, b)); err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	return s.Ended(s.ctx)
}

// TestUrgentBeforeProposal has a client send an urgent byte instead of PROPOSAL. The module never reads that byte, and must
// not take it for the beginning of a handshake that is about to end: neither TCP nor SMC connections wait for it.
func TestUrgentBeforeProposal(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	addr := netip.AddrPortFrom(service.Addr(), 7041)
	echoUntilEnd(t, addr, 64)
	if err := steps(smc, urgent([]byte{0}))(newTCPSession(handshakeContext(t), t, n, 33, 0, addr)); err != nil {
		t.Fatal(err)
	}
	if err := askTCP(addr, "plain TCP", promptTCP); err != nil {
		t.Errorf("a plain TCP connection: %v", err)
	}
	if err := guest.Ask(addr, "SMC", promptTCP); err != nil {
		t.Errorf("an SMC connection: %v", err)
	}
}
