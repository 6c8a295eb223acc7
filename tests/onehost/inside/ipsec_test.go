// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

const reasonIPsec = 0x03020000

// protect makes IPsec encrypt the packets from one address of the wire to the other, and makes the receiver require this.
func protect(t *testing.T, from, to, fromNS, toNS, selector string) {
	t.Helper()
	state := fmt.Sprintf("xfrm state add src %s dst %s proto esp spi 0x7 reqid 7 mode transport "+
		"auth 'hmac(sha256)' 0x%064d enc 'cbc(aes)' 0x%032d", from, to, 1, 2)
	policy := fmt.Sprintf("xfrm policy add src %s dst %s proto tcp %s dir %%s tmpl src %[1]s dst %[2]s proto esp reqid 7 mode transport",
		from, to, selector)
	for _, ns := range []string{fromNS, toNS} {
		guest.Run(t, "ip "+ns+" "+state)
	}
	// Configure the sender first, because the receiver drops unprotected packets.
	guest.Run(t, "ip "+fromNS+" "+fmt.Sprintf(policy, "out"))
	guest.Run(t, "ip "+toNS+" "+fmt.Sprintf(policy, "in"))
}

const unprotect = `for ns in "" "-n far"; do ip $ns xfrm policy flush; ip $ns xfrm state flush; done`

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

// protectable returns a listener in the other namespace, to which connections are SMC-D while no policy applies to them.
func protectable(t *testing.T) int {
	t.Helper()
	needD(t)
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, unprotect+"; ip netns del far") })
	l := farListener(t)
	t.Cleanup(func() { unix.Close(l) })
	return l
}

// TestIPsec adds policies that protect packets of one direction, and checks that the sender detects them.
func TestIPsec(t *testing.T) {
	l := protectable(t)
	for _, c := range []struct {
		name           string
		protect        func()
		client, server int
	}{
		{"no policy", func() {}, 0, 0},
		{"of another port", func() { protect(t, "10.97.0.1", "10.97.0.2", "", "-n far", "dport 7777") }, 0, 0},
		{"of what the client sends", func() { protect(t, "10.97.0.1", "10.97.0.2", "", "-n far", "dport 7000") }, 1, 0},
		{"of what the server sends", func() { protect(t, "10.97.0.2", "10.97.0.1", "-n far", "", "sport 7000") }, 0, 1},
		{"no policy any more", func() {}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.protect()
			defer guest.Run(t, unprotect)
			before := count(t)
			client, server := ipsecFallbacks(t)
			pair := span(t, l)
			defer pair.close()
			if err := pair.exchange(100_000, always(writers["send"], 10_000), always(readers["recv"], 10_000)); err != nil {
				t.Error(err)
			}
			nowClient, nowServer := ipsecFallbacks(t)
			if nowClient-client != c.client || nowServer-server != c.server {
				t.Errorf("%d clients and %d servers fell back for IPsec, want %d and %d",
					nowClient-client, nowServer-server, c.client, c.server)
			}
			if smcd := int(count(t).clients - before.clients); smcd != 1-c.client-c.server {
				t.Errorf("%d connections of SMC-D", smcd)
			}
		})
	}
}

// resetByPolicy waits for the reset of a connection.
func resetByPolicy(fd int) error {
	if n, _, err := unix.Recvfrom(fd, make([]byte, 1), 0); !errors.Is(err, unix.ECONNRESET) {
		return fmt.Errorf("recv() of a connection that a policy has come to apply to: %d, %w", n, err)
	}
	return nil
}

// farPair opens a connection to the other namespace. Reads from either end time out.
func farPair(t *testing.T, l int) (client, server int) {
	t.Helper()
	client, server = pairAt(t, l, far, 0)
	t.Cleanup(func() {
		guest.Abort(client)
		guest.Abort(server)
	})
	if err := errors.Join(guest.Timeout(client, noticeTimeout), guest.Timeout(server, noticeTimeout)); err != nil {
		t.Fatal(err)
	}
	return client, server
}

// sender is an end of connections to port 7000: its namespace, and the selector of its packets.
type sender struct{ name, ns, from, to, selector string }

var senders = []sender{
	{"client", "", "10.97.0.1", "10.97.0.2", "dport 7000"},
	{"server", "-n far", "10.97.0.2", "10.97.0.1", "sport 7000"},
}

// policy returns the first part of a command that adds or deletes a policy for the sender's packets.
func (s sender) policy(verb string) string {
	return fmt.Sprintf("ip %s xfrm policy %s src %s dst %s proto tcp %s dir out", s.ns, verb, s.from, s.to, s.selector)
}

// template returns the part of the command that makes the policy encrypt.
func (s sender) template(level string) string {
	return fmt.Sprintf(" tmpl src %s dst %s proto esp reqid 7 mode transport level %s", s.from, s.to, level)
}

// association adds the SA that the template asks for.
func (s sender) association() string {
	return fmt.Sprintf("ip %s xfrm state add src %s dst %s proto esp spi 0x7 reqid 7 mode transport "+
		"auth 'hmac(sha256)' 0x%064d enc 'cbc(aes)' 0x%032d", s.ns, s.from, s.to, 1, 2)
}

// TestIPsecLiveChanges applies policies that do not transform packets to an SMC connection, and then changes them so that the
// packets of one end must be encrypted.
func TestIPsecLiveChanges(t *testing.T) {
	l := protectable(t)
	for _, s := range senders {
		for _, c := range []struct{ name, harmless, harmful string }{
			{
				"an SA comes for a template of level use",
				s.policy("add") + s.template("use"),
				s.association(),
			},
			{
				"a policy goes that has exempted the connection from another one",
				s.policy("add") + " priority 10\n" +
					fmt.Sprintf("ip %s xfrm policy add src %s dst %s proto tcp dir out priority 20", s.ns, s.from, s.to) +
					s.template("required"),
				s.policy("del"),
			},
			{
				"a policy that exempts the connection becomes one that does not",
				s.policy("add"),
				s.policy("update") + s.template("required"),
			},
		} {
			t.Run(s.name+"/"+c.name, func(t *testing.T) {
				before := count(t)
				defer guest.Run(t, unprotect)
				guest.Run(t, c.harmless)
				client, server := farPair(t, l)
				if now := count(t); now.clients != before.clients+1 || now.fallbacks != before.fallbacks {
					t.Fatalf("want a connection of SMC and no fallback; %+v became %+v", before, now)
				}
				// These changes end policies that do not apply to the connection.
				other := fmt.Sprintf("ip %s xfrm policy %%s src %s dst %s proto udp dir out", s.ns, s.from, s.to)
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
}

// TestIPsecLive adds a policy that applies to some of the open connections: only those are reset.
func TestIPsecLive(t *testing.T) {
	needD(t)
	settled(t)
	build(t)
	before := count(t)
	t.Cleanup(func() { guest.Run(t, unprotect+"; ip netns del far") })
	l := farListener(t)
	defer unix.Close(l)
	pair := func() [2]int {
		client, server := farPair(t, l)
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
	name, err := unix.Getsockname(hers[0])
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprint("sport ", name.(*unix.SockaddrInet4).Port, " dport 7000")
	protect(t, "10.97.0.1", "10.97.0.2", "", "-n far", first)
	if err := errors.Join(resetByPolicy(hers[0]), resetByPolicy(hers[1])); err != nil {
		t.Error(err)
	}
	if err := errors.Join(ping(clients[0], clients[1], 1), ping(servers[0], servers[1], 2), ping(here1[0], here2[0], 3)); err != nil {
		t.Errorf("connections that no policy applies to: %v", err)
	}
	guest.Run(t, unprotect)
	protect(t, "10.97.0.2", "10.97.0.1", "-n far", "", "sport 7000")
	if err := errors.Join(resetByPolicy(clients[0]), resetByPolicy(clients[1]), resetByPolicy(servers[0]), resetByPolicy(servers[1])); err != nil {
		t.Error(err)
	}
	if err := ping(here1[0], here2[0], 4); err != nil {
		t.Errorf("a connection over the loopback device, which IPsec does not apply to: %v", err)
	}
}
