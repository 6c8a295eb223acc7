// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestOptionsRefused sets options that would pass a socket to another protocol. They must fail, and the connection must still
// use SMC.
func TestOptionsRefused(t *testing.T) {
	settled(t)
	onlySMC(t, 1)
	addr := netip.AddrPortFrom(here.Addr(), 7040)
	l, _, err := socket(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	c, sa, err := socket(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c)
	for name, fd := range map[string]int{"listener": l, "client": c} {
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "nosuch"); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: TCP_ULP of a protocol that is not there: %v", name, err)
		}
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "mptcp"); err == nil {
			t.Errorf("%s: TCP_ULP of a protocol that is not for applications succeeds", name)
		}
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "tls"); err == nil {
			t.Errorf("%s: TCP_ULP without a connection succeeds", name)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_ADDRFORM, unix.AF_INET); err == nil {
			t.Errorf("%s: IPV6_ADDRFORM of an IPv4 socket succeeds", name)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_REPAIR, 77); err == nil {
			t.Errorf("%s: TCP_REPAIR of an unknown mode succeeds", name)
		}
	}
	if err := errors.Join(unix.Bind(l, sa), unix.Listen(l, 1), unix.Connect(c, sa)); err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	if err := errors.Join(ping(c, s, 42), ping(s, c, 42)); err != nil {
		t.Error(err)
	}
}
