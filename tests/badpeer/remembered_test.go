// SPDX-License-Identifier: Apache-2.0

//go:build linux

package badpeer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/guest"
	"github.com/smckit/smckit/tests/peer"
	"golang.org/x/sys/unix"
)

// why is the reason for which a peer is remembered, and the peer's own.
type why struct{ reason, peer netlinksmc.Reason }

// declineFor is a DECLINE for a reason.
func declineFor(reason uint32) []byte {
	return peer.With(dec1, 16, byte(reason>>24), byte(reason>>16), byte(reason>>8), byte(reason))
}

// remembered returns the peers that the module remembers.
func remembered(t *testing.T) []policy.Peer {
	t.Helper()
	c, err := policy.New()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	peers, err := c.Peers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return peers
}

// find returns why an address is remembered, nil if it is not.
func find(peers []policy.Peer, addr netip.Addr, port uint16, role policy.Role) *why {
	for _, p := range peers {
		if p.Address == addr && p.Port == port && p.Role == role {
			return &why{p.Reason, p.PeerReason}
		}
	}
	return nil
}

func checkRemembered(t *testing.T, addr netip.Addr, port uint16, role policy.Role, want *why) {
	t.Helper()
	got := find(remembered(t), addr, port, role)
	if fmt.Sprint(got) != fmt.Sprint(want) && (got == nil || want == nil || *got != *want) {
		t.Errorf("%s port %d is remembered for %+v, want %+v", addr, port, got, want)
	}
}

// setTime sets for how long peers are remembered, until the end of the test.
func setTime(t *testing.T, m guest.Marker, seconds int) {
	t.Helper()
	m.Set(t, "net.smc.remember_peers", fmt.Sprint(seconds))
	t.Cleanup(func() { guest.Run(t, "smc_policy peers flush") })
}

// tcpSessionOf prepares a connection with a peer that may have had others before. Its end is reset at the end of the test.
func tcpSessionOf(ctx context.Context, t *testing.T, n *peer.Net, self, to netip.AddrPort) *tcpSession {
	t.Helper()
	s := &tcpSession{ctx: ctx, TCP: n.NewTCP(self), service: to, hello: []byte("hello from " + self.String())}
	t.Cleanup(func() {
		if s.Kernel.IsValid() {
			_ = s.Put(s.Segment(peer.RST | peer.ACK))
		}
	})
	return s
}

// answerPlain answers the SYN of the kernel's connection without the option, and wants it not to have the option.
func answerPlain(s *tcpSession) error { return answerUnasked(s, peer.MSS) }

// answerWithOption does so with the option, which nobody has asked for.
func answerWithOption(s *tcpSession) error {
	return answerUnasked(s, slices.Concat(peer.MSS, peer.Option))
}

// answerUnasked answers a SYN that is not to have the option.
func answerUnasked(s *tcpSession, options []byte) error {
	if err := s.Accept(s.ctx, options); err != nil {
		return err
	}
	if peer.Magic(s.Answer.Options) {
		return fmt.Errorf("the option is in the SYN: %s", s.Answer)
	}
	return nil
}

// fallbackOf returns why the connection between two addresses is TCP.
func fallbackOf(t *testing.T, local, remote netip.AddrPort) why {
	t.Helper()
	d, err := netlinksmc.NewDiag()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for s, err := range d.Sockets(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Local == local && s.Peer == remote && s.Fallback != nil {
			return why{s.Fallback.Reason, s.Fallback.PeerDiagnosis}
		}
	}
	t.Errorf("no fallback of %s and %s is listed", local, remote)
	return why{}
}

// unableServers are what servers do with our first connection, and why the next one is TCP; nil if it tries SMC again.
var unableServers = []struct {
	handshakeCase
	why *why
}{
	{handshakeCase{name: "DECLINE for no device", want: works, steps: []step{offered, putHello(0, dec1)}}, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice}},
	{handshakeCase{name: "DECLINE over IPv6", ipv6: true, want: works, steps: []step{offered, putHello(0, declineFor(0x03030008))}}, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoUEID}},
	{handshakeCase{name: "DECLINE after CONFIRM", want: works, steps: []step{offered, put(accept1), get(peer.Confirm), putHello(0, dec1)}}, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice}},
	{handshakeCase{name: "DECLINE for memory", want: works, steps: []step{offered, putHello(0, declineFor(0x01010000))}}, nil},
	{handshakeCase{name: "DECLINE for lost synchronization", want: works, steps: []step{offered, putHello(0, declineFor(0x04000000))}}, nil},
	{handshakeCase{name: "DECLINE for an unknown reason", want: works, steps: []step{offered, putHello(0, declineFor(0x12345678))}}, nil},
	{handshakeCase{name: "ACCEPT of another transport", want: works, steps: []step{offered, put(peer.AcceptR1(peer.Accept)), declined(reasonMode)}}, &why{reason: netlinksmc.ReasonMode}},
	{handshakeCase{name: "our failure", want: works, steps: []step{offered, put(accept1), get(peer.Confirm), declined(reasonInternal)}}, nil},
	{handshakeCase{name: "option returned, web server", want: broken, steps: []step{offered, putFlags(peer.FIN, []byte("HTTP/1.1 400 Bad Request\r\n\r\n"))}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "option returned, SSH server", want: broken, steps: []step{served, put([]byte("SSH-2.0-OpenSSH_9.2\r\n"))}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "option returned, FIN", want: cut, steps: []step{offered, fin}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "option returned, RST", want: cut, steps: []step{offered, rst}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "option returned, silence", want: timesOut, steps: []step{offered}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "malformed ACCEPT", want: broken, steps: []step{offered, put(short(accept1, 44))}}, &why{reason: netlinksmc.ReasonPeerNoCLC}},
	{handshakeCase{name: "end after CONFIRM", want: cut, steps: []step{offered, put(accept1), get(peer.Confirm), fin}}, nil},
	{handshakeCase{name: "no option", want: works, steps: []step{synAck(peer.MSS)}}, nil},
}

// TestRememberedServers has servers with which SMC is not possible. The next SYN to each has no option, and its
// connection works, also if the answer has one.
func TestRememberedServers(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	for i, b := range unableServers {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			self := address(b.ipv6, 51, i)
			ctx, cancel := context.WithTimeout(t.Context(), 2*(handshakeWait+2*slack))
			defer cancel()
			first := tcpSessionOf(ctx, t, n, self, service)
			b.asClient(t, first)
			_ = first.Put(first.Segment(peer.RST | peer.ACK))
			checkRemembered(t, self.Addr(), self.Port(), policy.Connect, b.why)
			next := handshakeCase{name: b.name, want: works, steps: []step{answerPlain, func(s *tcpSession) error {
				if got := fallbackOf(t, s.Kernel, self); got != *b.why {
					return fmt.Errorf("the fallback is shown with %+v, want %+v", got, *b.why)
				}
				return nil
			}}}
			if b.why == nil {
				next.steps = []step{synAck(peer.MSS)}
			}
			next.asClient(t, tcpSessionOf(ctx, t, n, self, service))
			if b.why != nil {
				next.steps = []step{answerWithOption}
				next.asClient(t, tcpSessionOf(ctx, t, n, self, service))
			}
			// Another port of the server is another service.
			other := netip.AddrPortFrom(self.Addr(), self.Port()+1)
			again := handshakeCase{name: b.name, want: works, steps: []step{synAck(peer.MSS)}}
			again.asClient(t, tcpSessionOf(ctx, t, n, other, service))
		})
	}
}

// TestRememberedOwnEnd has our application end a handshake: that is not the server's fault.
func TestRememberedOwnEnd(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	ctx := handshakeContext(t)
	for i, end := range []func(fd int) error{
		func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RD) },
		func(fd int) error { return unix.Shutdown(fd, unix.SHUT_RDWR) },
		guest.Disconnect,
	} {
		fd, s := attempt(ctx, t, n, 50+i)
		if err := end(fd); err != nil {
			t.Fatal(err)
		}
		if err := s.Put(s.Segment(peer.RST | peer.ACK)); err != nil {
			t.Error(err)
		}
		guest.Abort(fd)
		checkRemembered(t, s.Self.Addr(), s.Self.Port(), policy.Connect, nil)
	}
}

// unableClients are what clients do with their first connection, and why the next one is TCP; nil if it may be SMC.
var unableClients = []struct {
	handshakeCase
	why *why
}{
	{handshakeCase{name: "nothing offered", want: works, steps: []step{smc, put(peer.ProposalNone()), declined(reasonNoDevice)}}, &why{reason: netlinksmc.ReasonNoDevice}},
	{handshakeCase{name: "another network", ipv6: true, want: works, steps: []step{smc, put(peer.ProposalD1v6(8, [16]byte{0xfd, 1}, 64)), declined(reasonPrefix)}}, &why{reason: netlinksmc.ReasonPrefix}},
	{handshakeCase{name: "DECLINE of our ACCEPT", want: works, steps: []step{smc, put(d1), get(peer.Accept), putHello(0, dec1)}}, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice}},
	{handshakeCase{name: "DECLINE of our ACCEPT for memory", want: works, steps: []step{smc, put(d1), get(peer.Accept), putHello(0, declineFor(0x01010000))}}, nil},
	{handshakeCase{name: "our failure", want: works, steps: []step{smc, put(d1), get(peer.Accept), put(confirm1), declined(reasonInternal)}}, nil},
	{handshakeCase{name: "silence", want: expired, steps: []step{smc}}, nil},
	{handshakeCase{name: "garbage", want: dropped, steps: []step{smc, put([]byte("GET / HTTP/1.1\r\n\r\n"))}}, nil},
	{handshakeCase{name: "SYN only", want: never, steps: []step{halfOpen(peer.Option), agreed, rst}}, nil},
}

// TestRememberedClients has clients with which SMC is not possible. The next SYN of each, from another port, is answered without the
// option, and its connection works.
func TestRememberedClients(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	e, e6 := guest.NewEcho(t, service, 1024), guest.NewEcho(t, service6, 1024)
	t.Run("all", func(t *testing.T) {
		for i, b := range unableClients {
			t.Run(b.name, func(t *testing.T) {
				t.Parallel()
				self, to := address(b.ipv6, 52, i), service
				if b.ipv6 {
					to = service6
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*(handshakeWait+2*slack))
				defer cancel()
				b.asServer(t, tcpSessionOf(ctx, t, n, self, to))
				checkRemembered(t, self.Addr(), to.Port(), policy.Listen, b.why)
				next := handshakeCase{name: b.name, want: works, steps: []step{syn(peer.MSS, peer.Option), refused}}
				if b.why == nil {
					next.steps = []step{smc, putHello(0, declineFor(0x01010000))}
				}
				s := tcpSessionOf(ctx, t, n, netip.AddrPortFrom(self.Addr(), self.Port()+1), to)
				if err := next.play(s); err != nil {
					t.Fatal(err)
				}
				if err := s.talk(); err != nil {
					t.Error(err)
				}
				if b.why == nil {
					return
				}
				if got := fallbackOf(t, to, s.Self); got != *b.why {
					t.Errorf("the fallback is shown with %+v, want %+v", got, *b.why)
				}
			})
		}
	})
	e.Close(t)
	e6.Close(t)
}

// declinedOnce has a server decline a connection of ours, so that the module remembers the server.
func declinedOnce(ctx context.Context, t *testing.T, n *peer.Net, self netip.AddrPort) {
	t.Helper()
	b := handshakeCase{name: "declines", want: works, steps: []step{offered, putHello(0, dec1)}}
	s := tcpSessionOf(ctx, t, n, self, service)
	b.asClient(t, s)
	_ = s.Put(s.Segment(peer.RST | peer.ACK))
	checkRemembered(t, self.Addr(), self.Port(), policy.Connect, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice})
}

// TestRememberedUsers has a socket of another user than the one whose handshake was declined: its SYN has the option.
func TestRememberedUsers(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	ctx := handshakeContext(t)
	self := address(false, 58, 0)
	declinedOnce(ctx, t, n, self)
	s := tcpSessionOf(ctx, t, n, self, service)
	fd, sa, err := guest.Socket(self)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	if err := errors.Join(unix.Fchown(fd, 1000, -1), unix.SetNonblock(fd, true)); err != nil {
		t.Fatal(err)
	}
	if err := unix.Connect(fd, sa); !errors.Is(err, unix.EINPROGRESS) {
		t.Fatalf("connect: %v", err)
	}
	if err := offered(s); err != nil {
		t.Error(err)
	}
	next := handshakeCase{name: "the same user", want: works, steps: []step{answerPlain}}
	next.asClient(t, tcpSessionOf(ctx, t, n, self, service))
}

// TestRememberedChanges has local changes by which SMC may become possible: each has the module forget all peers.
func TestRememberedChanges(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	ctx := handshakeContext(t)
	self := address(false, 53, 0)
	for i, change := range []string{
		"smcr ueid add SMCKIT.OTHER", "smcr ueid del SMCKIT.OTHER",
		"smc_pnet add LAB1 eth " + device, "smc_pnet del LAB1 eth " + device,
		"sysctl -qw net.smc.loopback=0", "sysctl -qw net.smc.loopback=2",
		"sysctl -qw net.smc.smcr_v1_rocev2=1", "sysctl -qw net.smc.smcr_v1_rocev2=0",
		"ip link add forgets0 type veth peer name forgets1; ip link set forgets0 up; ip link del forgets0",
		"rmmod smc_null; modprobe smc_null",
		"ip xfrm policy add dir out src 10.200.0.1 dst 10.200.0.2 tmpl proto esp mode transport", "ip xfrm policy flush",
		"ip xfrm state add src 10.200.0.1 dst 10.200.0.2 proto esp spi 7 mode transport auth 'hmac(sha256)' 0x07 enc 'cbc(aes)' 0x00000000000000000000000000000007",
		"ip xfrm state flush",
		"smc_policy peers flush",
	} {
		declinedOnce(ctx, t, n, self)
		guest.Run(t, change)
		if peers := remembered(t); len(peers) > 0 {
			t.Errorf("%s: %d peers are remembered", change, len(peers))
		}
		if i == 0 {
			again := handshakeCase{name: "tries SMC again", want: works, steps: []step{synAck(peer.MSS)}}
			again.asClient(t, tcpSessionOf(ctx, t, n, self, service))
		}
	}
	// These make no difference.
	declinedOnce(ctx, t, n, self)
	guest.Run(t, "sysctl -qw net.smc.autocorking_size=1; sysctl -qw net.smc.autocorking_size=65536; smc_policy add tcp port 1; smc_policy flush")
	checkRemembered(t, self.Addr(), self.Port(), policy.Connect, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice})
}

// TestRememberedTime has peers forgotten after the time that is set, and not remembered if it is 0.
func TestRememberedTime(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 600)
	ctx := handshakeContext(t)
	self := address(false, 54, 0)
	tries := handshakeCase{name: "tries SMC again", want: works, steps: []step{synAck(peer.MSS)}}
	declinedOnce(ctx, t, n, self)
	// The setting counts for those that are remembered already.
	guest.Run(t, "sysctl -qw net.smc.remember_peers=0")
	checkRemembered(t, self.Addr(), self.Port(), policy.Connect, nil)
	tries.asClient(t, tcpSessionOf(ctx, t, n, self, service))
	declining := handshakeCase{name: "declines", want: works, steps: []step{offered, putHello(0, dec1)}}
	declining.asClient(t, tcpSessionOf(ctx, t, n, netip.AddrPortFrom(self.Addr(), 6001), service))
	guest.Run(t, "sysctl -qw net.smc.remember_peers=600")
	checkRemembered(t, self.Addr(), 6001, policy.Connect, nil)
	guest.Run(t, "smc_policy peers flush")
	declinedOnce(ctx, t, n, self)
	for _, p := range remembered(t) {
		if p.Left <= 0 || p.Left > 600*time.Second {
			t.Errorf("%v are left of 600 seconds", p.Left)
		}
	}
	guest.Run(t, "sysctl -qw net.smc.remember_peers=2")
	guest.Await(t, slack, func() string {
		if peers := remembered(t); len(peers) > 0 {
			return fmt.Sprintf("%+v are remembered", peers)
		}
		return ""
	})
	tries.asClient(t, tcpSessionOf(ctx, t, n, self, service))
}

// TestRememberedBound has more clients than the table takes. It has no room for more than 64 of the same IPv6 prefix, and servers stay
// in it.
func TestRememberedBound(t *testing.T) {
	guest.UseNull(t, true)
	n := openPeers(t)
	setTime(t, guest.NullGuest, 3600)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	e, e6 := guest.NewEcho(t, service, 4096), guest.NewEcho(t, service6, 4096)
	server := address(false, 55, 0)
	declinedOnce(ctx, t, n, server)
	const most, ofHost = 2048, 64
	clients := func(count int, to netip.AddrPort, self func(i int) netip.Addr) {
		var group sync.WaitGroup
		next := make(chan int)
		for range 8 {
			group.Go(func() {
				for i := range next {
					s := &tcpSession{ctx: ctx, TCP: n.NewTCP(netip.AddrPortFrom(self(i), 6000)), service: to}
					err := steps(smc, put(peer.ProposalNone()), declined(reasonNoDevice), rst)(s)
					if err != nil {
						t.Errorf("client %d: %v", i, err)
					}
				}
			})
		}
		for i := range count {
			next <- i
		}
		close(next)
		group.Wait()
	}
	listen := func() (listed []netip.Addr) {
		for _, p := range remembered(t) {
			if p.Role == policy.Listen {
				listed = append(listed, p.Address)
			}
		}
		return listed
	}
	clients(ofHost+36, service6, func(i int) netip.Addr {
		a := network6
		a[14], a[15] = 56, byte(i+1)
		return netip.AddrFrom16(a)
	})
	if listed := listen(); len(listed) != ofHost {
		t.Errorf("%d clients of one prefix are remembered, want %d", len(listed), ofHost)
	}
	clients(most+100, service, func(i int) netip.Addr {
		return netip.AddrFrom4([4]byte{network[0], network[1], byte(60 + i/250), byte(i%250 + 1)})
	})
	listed := listen()
	slices.SortFunc(listed, netip.Addr.Compare)
	if got := len(slices.Compact(listed)); got != most || len(listed) != most {
		t.Errorf("%d clients are remembered, %d of them once, want %d", len(listed), got, most)
	}
	if strings.Contains(fmt.Sprint(listed), "fd99") {
		t.Error("the oldest clients are still remembered")
	}
	checkRemembered(t, server.Addr(), server.Port(), policy.Connect, &why{netlinksmc.ReasonPeerDeclined, netlinksmc.ReasonNoDevice})
	e.Close(t)
	e6.Close(t)
}
