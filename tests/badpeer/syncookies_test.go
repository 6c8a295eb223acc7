// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestSYNCookies has clients collect SYN cookies of a listener, and connect with them when its backlog is full and nothing is
// accepted. Then the kernel has no stored SYN that it could drop.
func TestSYNCookies(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	guest.Run(t, "sysctl -qw net.ipv4.tcp_syncookies=2")
	t.Cleanup(func() { guest.Run(t, "sysctl -qw net.ipv4.tcp_syncookies=1") })
	const backlog, clients = 4, 40
	addr := netip.AddrPortFrom(service.Addr(), 7054)
	l, err := guest.Listen(addr, backlog)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	ctx := handshakeContext(t)
	var sessions []*tcpSession
	for i := range clients {
		s := newTCPSession(ctx, t, n, 37, i, addr)
		if err := halfOpen()(s); err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		if err := ack(s); err != nil {
			t.Fatal(err)
		}
		// The worker takes a connection out of TCP's queue within milliseconds, or not at all.
		for deadline := time.Now().Add(300 * time.Millisecond); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			info, err := unix.GetsockoptTCPInfo(l, unix.SOL_TCP, unix.TCP_INFO)
			if err != nil {
				t.Fatal(err)
			}
			if info.Unacked == 0 || info.Unacked > backlog {
				break
			}
		}
	}
	out := guest.Run(t, "ss -Htn state established '( sport = :7054 )'")
	const most = 2 * (backlog + 1)
	if connected := strings.Count(out, "\n"); connected < backlog || connected > most {
		t.Errorf("%d of %d connections were made to a listener with a backlog of %d, want %d to %d", connected, clients, backlog, backlog, most)
	}
}
