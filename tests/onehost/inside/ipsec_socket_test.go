// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
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
	xfrmPolicyOut  = 1
)

// ownPolicy returns a function that gives a socket a policy for what it sends: one that needs an SA with the reqid of the tests, or one
// that lets all packets pass.
func (w wireTest) ownPolicy(encrypts bool) func(fd int) error {
	family, level, name := uint16(unix.AF_INET), unix.IPPROTO_IP, ipXFRMPolicy
	if w.addr.Addr().Is6() {
		family, level, name = unix.AF_INET6, unix.IPPROTO_IPV6, ipv6XFRMPolicy
	}
	var value struct {
		policy   xfrmPolicy
		template xfrmTemplate
	}
	value.policy.selector.family = family
	value.policy.dir = xfrmPolicyOut
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
	onEachWire(t, func(t *testing.T, w wireTest) {
		for _, encrypts := range []bool{false, true} {
			policy := w.ownPolicy(encrypts)
			t.Run(map[bool]string{false: "lets pass", true: "encrypts"}[encrypts], func(t *testing.T) {
				defer guest.Run(t, unprotect)
				for _, ns := range []string{"", "-n far"} {
					guest.Run(t, w.client.association(ns)+w.server.association(ns))
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
