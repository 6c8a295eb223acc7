// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/xfrm"
	"golang.org/x/sys/unix"
)

const reasonIPsec = 0x03020000

// wires are the addresses of the ends of the wire, by the IP version of its packets and of the sockets.
var wires = []struct {
	name, client, server string
	listener             netip.AddrPort
}{
	{"IPv4", "10.97.0.1", "10.97.0.2", far},
	{"IPv6", "fd97::1", "fd97::2", netip.MustParseAddrPort("[fd97::2]:7000")},
	{"IPv4 on IPv6 sockets", "10.97.0.1", "10.97.0.2", netip.MustParseAddrPort("[::ffff:10.97.0.2]:7000")},
}

// onWires runs a test on the first n wires with a listener in the other namespace, to which connections are SMC-D while no policy
// applies to them.
func onWires(t *testing.T, n int, test func(t *testing.T, w wireTest)) {
	needD(t)
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, unprotect+"ip netns del far") })
	guest.Run(t, "ip addr add fd97::1/64 dev n0 nodad; ip -n far addr add fd97::2/64 dev f0 nodad")
	for _, w := range wires[:n] {
		t.Run(w.name, func(t *testing.T) {
			l := farListenerAt(t, w.listener)
			defer unix.Close(l)
			test(t, wireTest{
				client: sender{"client", xfrm.Sender{From: w.client, To: w.server, Selector: "dport 7000"}},
				server: sender{"server", xfrm.Sender{NS: "-n far", From: w.server, To: w.client, Selector: "sport 7000"}},
				l:      l, addr: w.listener,
			})
		})
	}
}

// wireTest is what a test has to do with: the ends of connections, and the listener.
type wireTest struct {
	client, server sender
	l              int
	addr           netip.AddrPort
}

// sender is an end of connections to port 7000.
type sender struct {
	name string
	xfrm.Sender
}

// protect makes IPsec encrypt the sender's packets, and makes the receiver require this. The receiver returns packets unprotected.
func (s sender) protect(t *testing.T, receiver sender) {
	t.Helper()
	send, receive := s.Protect(receiver.NS)
	guest.Run(t, send+receive)
}

var unprotect = xfrm.Unprotect("") + xfrm.Unprotect("-n far")

// ipsecFallbacks are the fallbacks for IPsec, as a client and as a server, of this namespace and the other.
func ipsecFallbacks(t *testing.T) (client, server int) {
	t.Helper()
	ask := func() error {
		c, s, err := fallbacks(reasonIPsec)
		client, server = client+c, server+s
		return err
	}
	if err := errors.Join(ask(), inFar(ask)); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// expect opens a connection, exchanges data, and checks how many clients and servers have fallen back for IPsec. Without those, the
// connection has to be SMC-D. The client's socket is prepared before it connects.
func (w wireTest) expect(t *testing.T, client, server int, prepare ...func(fd int) error) {
	t.Helper()
	before := count(t)
	clients, servers := ipsecFallbacks(t)
	c, sa, err := socket(w.addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, do := range prepare {
		err = errors.Join(err, do(c))
	}
	if err := errors.Join(err, guest.ConnectSocket(c, sa)); err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(w.l)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := newCouple(c, s, true, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer pair.close()
	if err := pair.exchange(100_000, always(writers["send"], 10_000), always(readers["recv"], 10_000)); err != nil {
		t.Error(err)
	}
	nowClients, nowServers := ipsecFallbacks(t)
	if nowClients-clients != client || nowServers-servers != server {
		t.Errorf("%d clients and %d servers fell back for IPsec, want %d and %d", nowClients-clients, nowServers-servers, client, server)
	}
	if smcd := int(count(t).clients - before.clients); smcd != 1-client-server {
		t.Errorf("%d connections of SMC-D", smcd)
	}
}

// TestIPsec adds policies that protect packets of one direction, and checks that the sender detects them.
func TestIPsec(t *testing.T) {
	onWires(t, len(wires), func(t *testing.T, w wireTest) {
		other := w.client
		other.Selector = "dport 7777"
		for _, c := range []struct {
			name           string
			protect        func()
			client, server int
		}{
			{"no policy", func() {}, 0, 0},
			{"of another port", func() { other.protect(t, w.server) }, 0, 0},
			{"of what the client sends", func() { w.client.protect(t, w.server) }, 1, 0},
			{"of what the server sends", func() { w.server.protect(t, w.client) }, 0, 1},
			{"no policy any more", func() {}, 0, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.protect()
				defer guest.Run(t, unprotect)
				w.expect(t, c.client, c.server)
			})
		}
	})
}

// resetByPolicy waits for the reset of a connection.
func resetByPolicy(fd int) error {
	if n, _, err := unix.Recvfrom(fd, make([]byte, 1), 0); !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("recv() of a connection that a policy has come to apply to: %d, %w", n, err)
	}
	return nil
}

// open opens a connection to the other namespace. Reads from either end time out.
func (w wireTest) open(t *testing.T) (client, server int) {
	t.Helper()
	client, server = pairAt(t, w.l, w.addr, 0)
	t.Cleanup(func() {
		guest.Abort(client)
		guest.Abort(server)
	})
	if err := errors.Join(guest.Timeout(client, noticeTimeout), guest.Timeout(server, noticeTimeout)); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// TestIPsecLiveChanges applies policies that do not transform packets to an SMC connection, and then changes them so that the
// packets of one end must be encrypted.
func TestIPsecLiveChanges(t *testing.T) {
	onWires(t, length(1, len(wires)), func(t *testing.T, w wireTest) {
		for _, s := range []sender{w.client, w.server} {
			t.Run(s.name, func(t *testing.T) { w.liveChanges(t, s) })
		}
	})
}

func (w wireTest) liveChanges(t *testing.T, s sender) {
	for _, c := range []struct{ name, harmless, harmful string }{
		{
			"an SA comes for a template of level use",
			s.Policy("add") + s.Template("use"),
			s.Association(s.NS),
		},
		{
			"a policy goes that has exempted the connection from another one",
			s.Policy("add") + " priority 10\n" +
				fmt.Sprintf("ip %s xfrm policy add src %s dst %s proto tcp dir out priority 20", s.NS, s.From, s.To) +
				s.Template("required"),
			s.Policy("del"),
		},
		{
			"a policy that exempts the connection becomes one that does not",
			s.Policy("add"),
			s.Policy("update") + s.Template("required"),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := count(t)
			defer guest.Run(t, unprotect)
			guest.Run(t, c.harmless)
			client, server := w.open(t)
			if now := count(t); now.clients != before.clients+1 || now.fallbacks != before.fallbacks {
				t.Fatalf("want a connection of SMC and no fallback; %+v became %+v", before, now)
			}
			// These changes end policies that do not apply to the connection.
			other := fmt.Sprintf("ip %s xfrm policy %%s src %s dst %s proto udp dir out", s.NS, s.From, s.To)
			guest.Run(t, fmt.Sprintf(other, "add")+"\n"+fmt.Sprintf(other, "del"))
			if err := ping(client, server, 1); err != nil {
				t.Fatalf("a connection that no policy protects: %v", err)
			}
			guest.Run(t, c.harmful)
			if err := errors.Join(resetByPolicy(client), resetByPolicy(server)); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestIPsecLive adds a policy that applies to some of the open connections: only those are reset.
func TestIPsecLive(t *testing.T) {
	onWires(t, length(1, len(wires)), func(t *testing.T, w wireTest) {
		before := count(t)
		defer guest.Run(t, unprotect)
		pair := func() [2]int {
			client, server := w.open(t)
			return [2]int{client, server}
		}
		hers, clients, servers := pair(), pair(), pair()
		here1, here2 := pairs(t, here, 1, 0)
		defer func() {
			guest.Abort(here1[0])
			guest.Abort(here2[0])
		}()
		if now := count(t); now.clients != before.clients+4 || now.fallbacks != before.fallbacks {
			t.Fatalf("want 4 connections of SMC and no fallback; %+v became %+v", before, now)
		}
		first := w.client
		first.Selector = fmt.Sprint("sport ", portOf(t, hers[0]), " dport 7000")
		first.protect(t, w.server)
		if err := errors.Join(resetByPolicy(hers[0]), resetByPolicy(hers[1])); err != nil {
			t.Error(err)
		}
		if err := errors.Join(ping(clients[0], clients[1], 1), ping(servers[0], servers[1], 2), ping(here1[0], here2[0], 3)); err != nil {
			t.Errorf("connections that no policy applies to: %v", err)
		}
		guest.Run(t, unprotect)
		w.server.protect(t, w.client)
		if err := errors.Join(resetByPolicy(clients[0]), resetByPolicy(clients[1]), resetByPolicy(servers[0]), resetByPolicy(servers[1])); err != nil {
			t.Error(err)
		}
		if err := ping(here1[0], here2[0], 4); err != nil {
			t.Errorf("a connection over the loopback device, which IPsec does not apply to: %v", err)
		}
	})
}

// portOf returns the port of a socket.
func portOf(t *testing.T, fd int) int {
	t.Helper()
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	switch sa := name.(type) {
	case *unix.SockaddrInet4:
		return sa.Port
	case *unix.SockaddrInet6:
		return sa.Port
	}
	t.Fatalf("a socket with the name %v", name)
	return 0
}
