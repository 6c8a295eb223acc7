// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAddresses parses addresses from the memory of programs, which may have any length and content.
func TestAddresses(t *testing.T) {
	raw := func(family uint16, rest ...byte) []byte {
		b := make([]byte, unix.SizeofSockaddrInet6)
		binary.NativeEndian.PutUint16(b, family)
		copy(b[2:], rest)
		return b
	}
	v4 := raw(unix.AF_INET, 0x1f, 0x90, 192, 0, 2, 1)
	v6 := raw(unix.AF_INET6, 0x1f, 0x90, 0, 0, 0, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9)
	mapped := raw(unix.AF_INET6, 0, 22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1)
	for _, c := range []struct {
		name string
		raw  []byte
		want string
	}{
		{"IPv4", v4[:16], "192.0.2.1:8080"},
		{"IPv4 with more room than it needs", v4, "192.0.2.1:8080"},
		{"IPv6", v6, "[2001:db8::9]:8080"},
		{"IPv6 without a scope", v6[:24], "[2001:db8::9]:8080"},
		{"IPv4 in IPv6", mapped, "192.0.2.1:22"},
		{"cut off", v4[:15], "invalid AddrPort"},
		{"IPv6 cut off", v6[:23], "invalid AddrPort"},
		{"nothing", nil, "invalid AddrPort"},
		{"Unix", raw(unix.AF_UNIX, '/', 'a'), "invalid AddrPort"},
		{"the end of a connection", raw(unix.AF_UNSPEC), "invalid AddrPort"},
	} {
		if got := parseSockaddr(c.raw); got.String() != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if got := parseSockaddr(v4); got != netip.MustParseAddrPort("192.0.2.1:8080") {
		t.Errorf("%v is not comparable", got)
	}
}
