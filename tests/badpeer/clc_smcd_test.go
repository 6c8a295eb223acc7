// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// smcdTimeout is how long the test may take on a busy machine.
const smcdTimeout = 60 * time.Second

// Addresses of forgers, and of the listener to which they connect.
const (
	forgers = "forgers0"
	fields  = "10.96.0.1/16"
)

var bank = netip.MustParseAddrPort("10.96.0.1:7700")

// Offsets in an ACCEPT, or CONFIRM, of SMC-D.
const (
	atType  = 4
	atToken = 16
)

// forger is a peer that knows the GID of this kernel's loopback device, which no other host should know.
func forger(t *testing.T, n *peer.Net, last byte) *peer.TCP {
	t.Helper()
	return n.NewTCP(netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, 1, last}), 6000))
}

// overhear connects a socket of ours to a peer, and returns its PROPOSAL, which contains that GID.
func overhear(ctx context.Context, t *testing.T, n *peer.Net) []byte {
	t.Helper()
	p := forger(t, n, 1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if fd, _ := guest.Connect(p.Self, smcdTimeout); fd >= 0 {
			unix.Close(fd)
		}
	}()
	err := p.Accept(ctx, bytes.Join([][]byte{peer.MSS, peer.Option}, nil))
	var proposal []byte
	if err == nil {
		proposal, err = p.Message(ctx, peer.Proposal)
	}
	if rerr := p.Put(p.Segment(peer.RST | peer.ACK)); rerr != nil {
		t.Error(rerr)
	}
	<-done
	if err != nil {
		t.Fatal(err)
	}
	return proposal
}

// acceptFor opens a connection to the listener and returns its ACCEPT.
func acceptFor(ctx context.Context, t *testing.T, p *peer.TCP, proposal []byte) []byte {
	t.Helper()
	if err := p.Connect(ctx, bank, bytes.Join([][]byte{peer.MSS, peer.Option}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(ctx, proposal); err != nil {
		t.Fatal(err)
	}
	accept, err := p.Message(ctx, peer.Accept)
	if err != nil {
		t.Fatal(err)
	}
	return accept
}

// confirmOther makes a CONFIRM from an ACCEPT. It names the DMB of another connection.
func confirmOther(accept, other []byte) []byte {
	return peer.With(peer.With(accept, atType, peer.Confirm), atToken, other[atToken:atToken+8]...)
}

// TestForgedSMCD has another host claim a DMB of our loopback device. It has the device's GID from a PROPOSAL and tokens from
// ACCEPTs, and connects a server to itself, to another server, or to no DMB. No application gets such a connection, and none
// is left.
func TestForgedSMCD(t *testing.T) {
	guest.SMCDGuest.Need(t)
	guest.Settled(t)
	ctx, cancel := context.WithTimeout(t.Context(), smcdTimeout)
	defer cancel()
	n := peer.OpenTUN(t, forgers, fields)
	l, err := guest.Listen(bank, 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	proposal := overhear(ctx, t, n)

	peers := make([]*peer.TCP, 4)
	accepts := make([][]byte, len(peers))
	for i := range peers {
		peers[i] = forger(t, n, byte(10+i))
		accepts[i] = acceptFor(ctx, t, peers[i], proposal)
	}
	confirms := [][]byte{
		confirmOther(accepts[0], accepts[0]), // itself
		confirmOther(accepts[1], accepts[2]), // each other
		confirmOther(accepts[2], accepts[1]),
		peer.With(confirmOther(accepts[3], accepts[3]), atToken, 1, 2, 3, 4, 5, 6, 7, 8),
	}
	for i, p := range peers {
		// Do not wait: our module is to handle two of them at the same time.
		if err := p.Push(p.Segment(peer.ACK|peer.PSH, confirms[i]...)); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range peers {
		if err := p.Ended(ctx); err != nil {
			t.Errorf("forger %d: the connection does not end: %v", i, err)
		}
	}
	// The well-behaved client gets a connection, and no other does.
	wellBehaved, err := guest.Connect(bank, smcdTimeout)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(wellBehaved)
	if err := guest.Timeout(l, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	server, sa, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(server)
	if from, ok := sa.(*unix.SockaddrInet4); !ok || from.Addr != bank.Addr().As4() {
		t.Errorf("the listener has got a connection from %+v", sa)
	}
	if err := unix.SetNonblock(l, true); err != nil {
		t.Fatal(err)
	}
	if fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("the listener has one more: %d, %v", fd, err)
	}
}
