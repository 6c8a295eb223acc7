// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// sharedListener opens a listener of AF_SMC with SO_REUSEPORT, which prepare changes before it listens. The caller closes it.
func sharedListener(t *testing.T, addr netip.AddrPort, prepare func(fd int) error) int {
	t.Helper()
	fd, sa, err := guest.Socket(addr)
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1), prepare(fd),
		unix.Bind(fd, sa), unix.Listen(fd, 8), guest.Timeout(fd, promptTCP))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestPromisedClientOfFallback closes a listener that has promised SMC to a client whose TCP handshake goes on. TCP has been configured
// meanwhile to move such connections to another listener of the port, which has fallen back: its application would read the client's
// CLC messages. So the client gets a reset, and the next one, which has been promised nothing, is served.
func TestPromisedClientOfFallback(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	addr := netip.AddrPortFrom(service.Addr(), 7402)
	ctx := handshakeContext(t)
	promises := sharedListener(t, addr, func(int) error { return nil })
	s := newTCPSession(ctx, t, n, 12, 0, addr)
	if err := errors.Join(halfOpen(peer.Option)(s), agreed(s)); err != nil {
		t.Fatal(err)
	}
	fallback := sharedListener(t, addr, func(fd int) error {
		return unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_FASTOPEN_NO_COOKIE, 0)
	})
	defer unix.Close(fallback)
	guest.Run(t, "sysctl -qw net.ipv4.tcp_migrate_req=1")
	t.Cleanup(func() { guest.Run(t, "sysctl -qw net.ipv4.tcp_migrate_req=0") })
	if err := errors.Join(unix.Close(promises), ack(s)); err != nil {
		t.Fatal(err)
	}
	fd, _, err := unix.Accept(fallback)
	if !errors.Is(err, unix.ECONNABORTED) {
		unix.Close(fd)
		t.Errorf("accept() of the listener that has fallen back: %v, want %v", err, unix.ECONNABORTED)
	}
	if err := endsAtOnce(s); err != nil || !s.Reset {
		t.Errorf("the client that was promised SMC is not reset: %v", err)
	}
	next := newTCPSession(ctx, t, n, 12, 1, addr)
	if err := errors.Join(halfOpen(peer.Option)(next), refused(next), ack(next)); err != nil {
		t.Fatal(err)
	}
	fd, _, err = unix.Accept(fallback)
	if err != nil {
		t.Fatalf("the next client is not served: %v", err)
	}
	unix.Close(fd)
}
