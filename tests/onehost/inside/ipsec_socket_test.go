// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"unsafe"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// Structures and constants of <linux/xfrm.h>, and options of <linux/in.h> and <linux/in6.h>.
type (
	xfrmSelector struct {
		daddr, saddr                       [16]byte
		dport, dportMask, sport, sportMask uint16
		family                             uint16
		prefixlenD, prefixlenS, proto      uint8
		ifindex                            int32
		user                               uint32
	}
	xfrmPolicy struct {
		selector                  xfrmSelector
		limits                    [8]uint64
		current                   [4]uint64
		priority, index           uint32
		dir, action, flags, share uint8
	}
	xfrmTemplate struct {
		daddr                         [16]byte
		spi                           uint32
		proto                         uint8
		_                             [3]uint8
		family                        uint16
		_                             uint16
		saddr                         [16]byte
		reqid                         uint32
		mode, share, optional         uint8
		authAlgos, encAlgos, comAlgos uint32
	}
)

const (
	ipXFRMPolicy   = 17
	ipv6XFRMPolicy = 35
	xfrmPolicyIn   = 0
	xfrmPolicyOut  = 1
)

// ownPolicy returns a function that gives a socket a policy for what it sends or receives: one that needs an SA with the reqid of the
// tests, or one that lets all packets pass.
func (w wireTest) ownPolicy(direction uint8, encrypts bool) func(fd int) error {
	family, level, name := uint16(unix.AF_INET), unix.IPPROTO_IP, ipXFRMPolicy
	if w.addr.Addr().Is6() {
		family, level, name = unix.AF_INET6, unix.IPPROTO_IPV6, ipv6XFRMPolicy
	}
	var value struct {
		policy   xfrmPolicy
		template xfrmTemplate
	}
	value.policy.selector.family = family
	value.policy.dir = direction
	for i := range 4 {
		value.policy.limits[i] = ^uint64(0) // no limit of bytes or packets
	}
	size := unsafe.Sizeof(value.policy)
	if encrypts {
		size = unsafe.Sizeof(value)
		// The mode is transport, and all algorithms are allowed.
		value.template = xfrmTemplate{
			proto: unix.IPPROTO_ESP, family: family, reqid: 7, authAlgos: ^uint32(0), encAlgos: ^uint32(0), comAlgos: ^uint32(0),
		}
	}
	return func(fd int) error {
		_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(&value)), size, 0)
		if errno != 0 {
			return fmt.Errorf("option %d: %w", name, errno)
		}
		return nil
	}
}

// onNewPort returns the same wire with a listener at another port, because either host remembers that the other one has declined.
func (w wireTest) onNewPort(t *testing.T) wireTest {
	t.Helper()
	w.l = farListenerAt(t, netip.AddrPortFrom(w.addr.Addr(), 0))
	t.Cleanup(func() { unix.Close(w.l) })
	w.addr = netip.AddrPortFrom(w.addr.Addr(), uint16(portOf(t, w.l)))
	return w
}

// TestIPsecSocket has programs set policies on their sockets: before these connect, and on listeners, whose accepted sockets inherit
// them. Even a policy that lets all packets pass makes the connection TCP, and no other one.
func TestIPsecSocket(t *testing.T) {
	onWires(t, length(1, len(wires)), func(t *testing.T, w wireTest) {
		for _, encrypts := range []bool{false, true} {
			policy := w.ownPolicy(xfrmPolicyOut, encrypts)
			t.Run(map[bool]string{false: "lets pass", true: "encrypts"}[encrypts], func(t *testing.T) {
				defer guest.Run(t, unprotect)
				for _, ns := range []string{"", "-n far"} {
					guest.Run(t, w.client.Association(ns)+w.server.Association(ns))
				}
				t.Run("client", func(t *testing.T) {
					w := w.onNewPort(t)
					w.expect(t, 1, 0, policy)
					w.expect(t, 0, 0) // other programs of the client's host have no such policy
				})
				t.Run("listener", func(t *testing.T) {
					w := w.onNewPort(t)
					if err := policy(w.l); err != nil {
						t.Fatal(err)
					}
					w.expect(t, 0, 1)
				})
			})
		}
		w.expect(t, 0, 0)
	})
}

// TestIPsecSocketLive has programs set policies on the sockets of open connections. Whatever the policy does, that connection ends, as
// its data may not bypass the policy, and no other one ends. An attempt that fails changes nothing.
func TestIPsecSocketLive(t *testing.T) {
	onWires(t, length(1, len(wires)), func(t *testing.T, w wireTest) {
		client, server := w.open(t)
		bystander := func(t *testing.T) {
			t.Helper()
			if err := errors.Join(ping(client, server, 1), ping(server, client, 2)); err != nil {
				t.Errorf("another connection: %v", err)
			}
		}
		for _, c := range []struct {
			name   string
			policy func(fd int) error
		}{
			{"out, lets pass", w.ownPolicy(xfrmPolicyOut, false)},
			{"out, encrypts", w.ownPolicy(xfrmPolicyOut, true)},
			{"in, lets pass", w.ownPolicy(xfrmPolicyIn, false)},
			{"in, encrypts", w.ownPolicy(xfrmPolicyIn, true)},
		} {
			t.Run(c.name, func(t *testing.T) {
				for i, name := range []string{"client", "server"} {
					t.Run(name, func(t *testing.T) {
						w.setLive(t, i, c.policy)
						bystander(t)
					})
				}
			})
		}
		t.Run("refused", func(t *testing.T) {
			refusedPolicies(t, w.ownPolicy(xfrmPolicyOut, true), client, server)
			bystander(t)
		})
		t.Run("listener", func(t *testing.T) {
			if err := w.ownPolicy(xfrmPolicyOut, false)(w.l); err != nil {
				t.Fatal(err)
			}
			bystander(t)
		})
	})
}

// setLive sets a policy on the client, 0, or the server, 1, of a new connection of SMC, and checks that both ends are reset.
func (w wireTest) setLive(t *testing.T, end int, policy func(fd int) error) {
	t.Helper()
	before := count(t)
	client, server := w.open(t)
	if now := count(t); now.clients != before.clients+1 || now.fallbacks != before.fallbacks {
		t.Fatalf("want a connection of SMC and no fallback; %+v became %+v", before, now)
	}
	if err := policy([]int{client, server}[end]); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(resetByPolicy(client), resetByPolicy(server)); err != nil {
		t.Error(err)
	}
}

// refusedPolicies tries to set policies on sockets: as a user without rights, and a policy of a wrong length.
func refusedPolicies(t *testing.T, policy func(fd int) error, fds ...int) {
	t.Helper()
	for _, fd := range fds {
		if err := guest.AsNobody(func() error { return policy(fd) }); !errors.Is(err, unix.EPERM) {
			t.Errorf("a policy that a user without rights sets: %v, want EPERM", err)
		}
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_IP, ipXFRMPolicy, 1); err == nil {
			t.Error("a policy of the length of a number can be set")
		}
	}
}
