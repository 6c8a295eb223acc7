// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// attempt starts a nonblocking connect() of an unprivileged user, whose server has received the PROPOSAL and has not answered.
func attempt(ctx context.Context, t *testing.T, n *peer.Net, i int) (fd int, s *tcpSession) {
	t.Helper()
	s = &tcpSession{ctx: ctx, TCP: n.NewTCP(address(false, 41, i)), hello: []byte("hello")}
	fd, connect := clientOfNobody(t, s.Self)
	t.Cleanup(func() { unix.Close(fd) })
	connect()
	if err := offered(s); err != nil {
		t.Fatal(err)
	}
	return fd, s
}

// TestAttempt has an unprivileged user make calls that TCP answers at once while it connects, after TCP is connected and before the SMC
// handshake is over.
func TestAttempt(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	ctx, cancel := context.WithTimeout(t.Context(), handshakeWait+2*slack)
	defer cancel()
	t.Run("shutdown ends it", func(t *testing.T) {
		fd, s := attempt(ctx, t, n, 0)
		if err := guest.AsNobody(func() error { return unix.Shutdown(fd, unix.SHUT_WR) }); err != nil {
			t.Fatalf("shutdown: %v", err)
		}
		if err := s.Ended(ctx); err != nil || !s.Reset {
			t.Errorf("the server has not been reset: %v", err)
		}
		if err := outcomeOf(fd); !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("the attempt ended with %v", err)
		}
	})
	t.Run("connect() that may not wait longer", func(t *testing.T) {
		fd, s := attempt(ctx, t, n, 2)
		wait := unix.NsecToTimeval((20 * time.Millisecond).Nanoseconds())
		if err := errors.Join(unix.SetNonblock(fd, false), unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &wait)); err != nil {
			t.Fatal(err)
		}
		again := func() error {
			return unix.Connect(fd, &unix.SockaddrInet4{Port: int(s.Self.Port()), Addr: s.Self.Addr().As4()})
		}
		if err := guest.AsNobody(again); !errors.Is(err, unix.EALREADY) {
			t.Errorf("connect: %v", err)
		}
		if err := put(dec1)(s); err != nil {
			t.Fatal(err)
		}
		if err := outcomeOf(fd); err != nil {
			t.Errorf("the attempt ended with %v", err)
		}
		if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a protocol on top has to wait", func(t *testing.T) {
		fd, s := attempt(ctx, t, n, 1)
		setULP := func() error { return unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "tls") }
		if err := guest.AsNobody(setULP); !errors.Is(err, unix.ENOTCONN) {
			t.Errorf("TCP_ULP: %v", err)
		}
		// The attempt goes on.
		if err := put(dec1)(s); err != nil {
			t.Fatal(err)
		}
		if err := outcomeOf(fd); err != nil {
			t.Fatalf("the attempt ended with %v", err)
		}
		if err := guest.WriteAll(fd, s.hello); err != nil {
			t.Fatal(err)
		}
		if err := s.Expect(ctx, s.hello); err != nil {
			t.Error(err)
		}
		if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil { // so that neither end waits for an acknowledgement
			t.Error(err)
		}
	})
}
