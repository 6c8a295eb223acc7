// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
)

// askTCP connects to an echo by plain TCP, sends something, and wants it back.
func askTCP(addr netip.AddrPort, text string, d time.Duration) error {
	c, err := net.DialTimeout("tcp", addr.String(), d)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(d)); err != nil {
		return err
	}
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		return fmt.Errorf("sent %q, got %q: %w", text, got, err)
	}
	return nil
}

// newTCPSession prepares the i-th peer with this third byte in its address, and resets its connection at the end.
func newTCPSession(ctx context.Context, t *testing.T, n *peer.Net, third byte, i int, to netip.AddrPort) *tcpSession {
	t.Helper()
	s := &tcpSession{ctx: ctx, TCP: n.NewTCP(address(false, third, i)), service: to, hello: fmt.Appendf(nil, "hello from %d.%d", third, i)}
	s.Kernel = to
	t.Cleanup(func() {
		if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil {
			t.Error(err)
		}
	})
	return s
}

// echoUntilEnd runs an echo until the test ends. It outlives the sessions that are prepared after it.
func echoUntilEnd(t *testing.T, addr netip.AddrPort, backlog int) {
	t.Helper()
	e := guest.NewEcho(t, addr, backlog)
	t.Cleanup(func() { e.Close(t) })
}

// handshakeContext is a context that outlives a handshake.
func handshakeContext(t *testing.T) context.Context {
	t.Helper()
	timeout := handshakeWait + 2*slack
	if guest.Checked(t) {
		timeout *= 10
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}

// TestFullBacklog has more clients than a backlog takes ask for SMC, connect, and stay silent. SMC may use half of the
// backlog, so that TCP connections are still accepted.
func TestFullBacklog(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	for i, backlog := range []int{1, 8} {
		t.Run(fmt.Sprintf("backlog %d", backlog), func(t *testing.T) {
			addr := netip.AddrPortFrom(service.Addr(), uint16(7010+i))
			echoUntilEnd(t, addr, backlog)
			ctx := handshakeContext(t)
			var silent []*tcpSession
			for j := range backlog + 1 {
				s := newTCPSession(ctx, t, n, byte(20+i), j, addr)
				if err := halfOpen(peer.Option)(s); err != nil {
					t.Fatal(err)
				}
				silent = append(silent, s)
			}
			promised := 0
			for _, s := range silent {
				if agreed(s) == nil {
					promised++
				}
				if err := ack(s); err != nil {
					t.Fatal(err)
				}
			}
			if most := max(1, (backlog+1)/2); promised != most {
				t.Errorf("%d of %d clients have been promised SMC, want %d", promised, len(silent), most)
			}
			for j := range 2*backlog + 2 {
				if err := askTCP(addr, "plain TCP", promptTCP); err != nil {
					t.Fatalf("plain TCP connection %d beside %d silent clients: %v", j, promised, err)
				}
			}
		})
	}
}

// TestForgedSYNs sends thousands of SYNs from unused addresses. Connections to the same ports, and to others, are SMC all the
// same.
func TestForgedSYNs(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	const each, backlog = 1500, 4096
	flooded := []netip.AddrPort{netip.AddrPortFrom(service.Addr(), 7020), netip.AddrPortFrom(service.Addr(), 7021)}
	other := netip.AddrPortFrom(service.Addr(), 7022)
	for _, addr := range append(slices.Clone(flooded), other) {
		echoUntilEnd(t, addr, backlog)
	}
	ctx := handshakeContext(t)
	forger := newTCPSession(ctx, t, n, 29, 0, other)
	for i := range each {
		for j, addr := range flooded {
			if err := forger.Put(&peer.Segment{
				Src: netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 99, byte(100 + i/250), byte(1 + i%250)}), uint16(5000+j)),
				Dst: addr, Seq: uint32(1e6 + i), Flags: peer.SYN, Window: 1000, Options: slices.Concat(peer.MSS, peer.Option),
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 30 {
		s := newTCPSession(ctx, t, n, 30, i, append(slices.Clone(flooded), other)[i%3])
		if err := errors.Join(smc(s), putHello(0, dec1)(s), s.talk()); err != nil {
			t.Errorf("connection %d to %s after %d forged SYNs: %v", i, s.service, len(flooded)*each, err)
		}
	}
}

// untilPromised has clients with this third byte in their addresses ask for SMC, one after another, until one is promised it, which has not
// acknowledged that. Those before it work as plain TCP; it returns their number, too.
func untilPromised(ctx context.Context, t *testing.T, n *peer.Net, third byte, addr netip.AddrPort) (s *tcpSession, refused int) {
	t.Helper()
	next := time.NewTicker(100 * time.Millisecond) // each client has an address of its own, and there are 250
	defer next.Stop()
	guest.Await(t, handshakeWait+slack, func() string {
		<-next.C
		s = newTCPSession(ctx, t, n, third, refused, addr)
		if err := halfOpen(peer.Option)(s); err != nil {
			t.Fatalf("client %d: %v", refused, err)
		}
		if agreed(s) == nil {
			return ""
		}
		if err := errors.Join(ack(s), s.talk()); err != nil {
			t.Fatalf("client %d, which has been refused SMC: %v", refused, err)
		}
		refused++
		return fmt.Sprintf("%d clients have been refused SMC", refused)
	})
	return s, refused
}

// TestForgedSYNsSmallBacklog sends SYNs from clients that stay silent to listeners with a small backlog: as many as may have SMC, and more
// than the backlog, so that TCP answers with cookies. Other clients get plain TCP at once, and SMC as soon as the places that are
// reserved for those SYNs are free again, which is a second later, and TCP has forgotten enough of the SYNs to need no cookies.
func TestForgedSYNsSmallBacklog(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	const backlog, most = 8, 4
	for i, forged := range []int{most, 4 * backlog} {
		t.Run(fmt.Sprint(forged), func(t *testing.T) {
			addr := netip.AddrPortFrom(service.Addr(), uint16(7023+i))
			echoUntilEnd(t, addr, backlog)
			ctx := handshakeContext(t)
			promised := 0
			for j := range forged {
				s := newTCPSession(ctx, t, n, byte(42+i), j, addr)
				if err := halfOpen(peer.Option)(s); err != nil {
					t.Fatal(err)
				}
				if agreed(s) == nil {
					promised++
				}
			}
			if promised < most {
				t.Errorf("%d of %d silent clients have been promised SMC, want %d", promised, forged, most)
			}
			s, refused := untilPromised(ctx, t, n, byte(44+i), addr)
			if err := errors.Join(ack(s), putHello(0, dec1)(s), s.talk()); err != nil {
				t.Fatalf("a client that has been promised SMC beside %d silent ones: %v", forged, err)
			}
			t.Logf("%d clients were refused SMC before one got it", refused)
		})
	}
}

// TestRepeatedSYNACK has a client that is refused SMC, as others use all that is there for it, and that repeats its SYN when
// there is room again. The first answer stays valid.
func TestRepeatedSYNACK(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	addr := netip.AddrPortFrom(service.Addr(), 7030)
	echoUntilEnd(t, addr, 2)
	ctx := handshakeContext(t)
	first, second := newTCPSession(ctx, t, n, 31, 0, addr), newTCPSession(ctx, t, n, 31, 1, addr)
	if err := smc(first); err != nil {
		t.Fatal(err)
	}
	// The listener counts a handshake from when it has begun, and it has when an accept() has returned with another one.
	if err := askTCP(addr, "plain TCP", promptTCP); err != nil {
		t.Fatal(err)
	}
	if err := steps(halfOpen(peer.Option), refused)(second); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(putHello(0, dec1)(first), first.talk()); err != nil {
		t.Fatal(err)
	}
	if err := steps(repeatSYN(0, peer.Option), answered)(second); err != nil {
		t.Fatal(err)
	}
	if peer.Magic(second.Last.Options) {
		t.Errorf("the first answer had no option, the second one has: %s", second.Last)
	}
	if err := errors.Join(ack(second), second.talk()); err != nil {
		t.Errorf("the connection that was refused SMC is no TCP connection: %v", err)
	}
}

// TestLateACK has a client acknowledge the SYN-ACK when its place has been freed, and a silent client has the only one. It goes to send
// PROPOSAL all the same, and must not be reset.
func TestLateACK(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	addr := netip.AddrPortFrom(service.Addr(), 7031)
	echoUntilEnd(t, addr, 2)
	ctx := handshakeContext(t)
	late := newTCPSession(ctx, t, n, 46, 0, addr)
	if err := steps(halfOpen(peer.Option), agreed)(late); err != nil {
		t.Fatal(err)
	}
	silent, refused := untilPromised(ctx, t, n, 47, addr)
	if err := ack(silent); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(ack(late), putHello(0, dec1)(late), late.talk()); err != nil {
		t.Errorf("the late client, when %d others have been refused SMC, and one has its place: %v", refused, err)
	}
}

// TestVRF has the server's device be in a VRF, where a SYN-ACK passes the output hooks twice.
func TestVRF(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	guest.Run(t, `modprobe vrf
		ip link add vrf0 type vrf table 10
		ip link set vrf0 up
		ip link set `+device+` master vrf0
		sysctl -qw net.ipv4.tcp_l3mdev_accept=1`)
	t.Cleanup(func() { guest.Run(t, "sysctl -qw net.ipv4.tcp_l3mdev_accept=0; ip link del vrf0") })
	echoUntilEnd(t, netip.MustParseAddrPort("0.0.0.0:7050"), 64)
	optionHolds(t, n, 33, 7050)
}

// TestCopiedSYNACK has netfilter send copies of all SYN-ACKs somewhere else.
func TestCopiedSYNACK(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	for i, c := range []struct{ name, do, undo string }{
		{"nft dup", `nft add table ip copy
			nft add chain ip copy out '{ type filter hook output priority mangle; }'
			nft add rule ip copy out tcp flags '&' '(syn | ack)' == '(syn | ack)' dup to 10.99.250.1 device ` + device, "nft delete table ip copy"},
		{
			"iptables TEE", "iptables -t mangle -A OUTPUT -p tcp --tcp-flags SYN,ACK SYN,ACK -j TEE --gateway 10.99.250.1",
			"iptables -t mangle -F OUTPUT",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			guest.Run(t, c.do)
			defer guest.Run(t, c.undo)
			port := uint16(7051 + i)
			echoUntilEnd(t, netip.AddrPortFrom(service.Addr(), port), 64)
			optionHolds(t, n, byte(34+i), port)
		})
	}
}

// optionHolds connects to a server that promises SMC, and declines: the application gets only its data.
func optionHolds(t *testing.T, n *peer.Net, third byte, port uint16) {
	t.Helper()
	ctx := handshakeContext(t)
	for i := range 5 {
		s := newTCPSession(ctx, t, n, third, i, netip.AddrPortFrom(service.Addr(), port))
		s.hello = bytes.Repeat([]byte("hello "), 20)
		if err := errors.Join(smc(s), putHello(0, dec1)(s), s.talk()); err != nil {
			t.Errorf("connection %d: %v\n%+v", i, err, s.TCP)
		}
	}
}
