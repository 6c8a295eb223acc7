// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"net/netip"
	"testing"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

func TestEndpointMatch(t *testing.T) {
	for _, tc := range []struct {
		text, address string
		want          bool
	}{
		{"10.0.0.1", "10.0.0.1:80", true},
		{"10.0.0.1", "10.0.0.2:80", false},
		{"10.0.0.1", "[::ffff:10.0.0.1]:80", true},
		{"::ffff:10.0.0.1", "10.0.0.1:80", true},
		{"10.0.0.1", "[::10.0.0.1]:80", false},
		{"10.0.0.0/8", "10.255.0.1:80", true},
		{"10.1.2.3/8", "10.255.0.1:80", true},
		{"10.0.0.0/8", "[::ffff:10.255.0.1]:80", true},
		{"10.0.0.0/8", "11.0.0.1:80", false},
		{"10.0.0.0/8", "[2001:db8::1]:80", false},
		{"::ffff:10.0.0.0/104", "10.255.0.1:80", true},
		{"::ffff:10.0.0.0/104", "11.255.0.1:80", false},
		{"0.0.0.0/0", "11.255.0.1:80", true},
		{"0.0.0.0/0", "[2001:db8::1]:80", false},
		{"::/0", "[2001:db8::1]:80", true},
		{"::/0", "10.0.0.1:80", false},
		{"2001:db8::/32", "[2001:db8:ffff::1]:80", true},
		{"2001:db8::1", "[2001:db8::1]:80", true},
		{"[2001:db8::1]", "[2001:db8::1]:80", true},
		{"[2001:db8::1]:80", "[2001:db8::1]:80", true},
		{"[2001:db8::1]:81", "[2001:db8::1]:80", false},
		{"2001:db8::1:80", "[2001:db8::1]:80", false},
		{"10.0.0.1:80", "10.0.0.1:80", true},
		{"10.0.0.1:80", "10.0.0.1:81", false},
		{"10.0.0.1:80", "10.0.0.2:80", false},
		{":80", "10.0.0.2:80", true},
		{"*:80", "[::1]:80", true},
		{":80", "[::1]:8080", false},
		{"0.0.0.0", "0.0.0.0:80", true},
		{"::", "0.0.0.0:80", true},
		{"0.0.0.0", "[::]:80", true},
		{"0.0.0.0", "10.0.0.1:80", false},
		{"::", "[::1]:80", false},
	} {
		m, err := parseEndpoint(tc.text)
		if err != nil {
			t.Errorf("%s: %v", tc.text, err)
			continue
		}
		if got := m.match(netip.MustParseAddrPort(tc.address)); got != tc.want {
			t.Errorf("%s selects %s: %v, want %v", tc.text, tc.address, got, tc.want)
		}
		if m.prefix.IsValid() && m.match(netip.AddrPort{}) {
			t.Errorf("%s selects a socket without an address", tc.text)
		}
	}
}

// FuzzParseEndpoint checks that a text that names an address selects it, and that nothing panics.
func FuzzParseEndpoint(f *testing.F) {
	for _, seed := range []string{
		"10.0.0.1", "10.0.0.0/8", "[::1]:80", ":80", "*:1", "::", "::ffff:1.2.3.4/96", "[", "]:", "[]:1", "fe80::1%a", "[::1", "[10.0.0.1]:5",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parseEndpoint(text)
		if err != nil {
			return
		}
		if m.port == 0 && !m.prefix.IsValid() {
			t.Fatalf("%q selects everything", text)
		}
		port := max(m.port, 1)
		if m.prefix.IsValid() && !m.match(netip.AddrPortFrom(m.prefix.Addr(), port)) {
			t.Fatalf("%q does not select %v", text, m.prefix.Addr())
		}
		m.match(netip.AddrPort{})
	})
}

func TestAppendAddr(t *testing.T) {
	for _, tc := range []struct{ address, want string }{
		{"10.0.0.1", "10.0.0.1"},
		{"::", "::"},
		{"::1", "::1"},
		{"::ffff", "::ffff"},
		{"::1:0", "::0.1.0.0"},
		{"::1.2.3.4", "::1.2.3.4"},
		{"::ffff:1.2.3.4", "::ffff:1.2.3.4"},
		{"::1:0:0", "::1:0:0"},
		{"1::", "1::"},
		{"fe80::1", "fe80::1"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
	} {
		if got := string(appendAddr(nil, netip.MustParseAddr(tc.address))); got != tc.want {
			t.Errorf("%s is written %s, want %s", tc.address, got, tc.want)
		}
	}
	if got := string(appendAddr(nil, netip.Addr{})); got != "0.0.0.0" {
		t.Errorf("no address is written %s", got)
	}
}

// TestEndpointWidth checks that the column keeps its width and the port is complete, for all lengths.
func TestEndpointWidth(t *testing.T) {
	addresses := []string{
		"1.2.3.4", "255.255.255.255", "::", "2001:db8::1:22", "2001:db8::1:222", "2001:db8::1:2222", "2001:db8::11:2222",
		"2001:db8::111:2222", "2001:db8::1111:2222", "2001:db8:1::1111:2222", "2001:db8:1234:5678:9abc:def0:1234:5678",
	}
	narrow := columns{}
	for _, a := range addresses {
		for _, port := range []uint16{0, 9, 99, 999, 9999, 65535} {
			ap := netip.AddrPortFrom(netip.MustParseAddr(a), port)
			got := string(narrow.appendEndpoint([]byte("x "), ap))[2:]
			if len(got) != addrWidth+1 {
				t.Errorf("%v: %q has %d characters", ap, got, len(got))
			}
			if _, p, _ := cutLast(got); p != ap.Port() {
				t.Errorf("%v: %q has port %d", ap, got, p)
			}
		}
	}
}

// cutLast returns what is before and after the last colon of an endpoint.
func cutLast(text string) (host string, port uint16, ok bool) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] == ':' {
			n := 0
			for _, c := range text[i+1:] {
				if c != ' ' {
					n = n*10 + int(c-'0')
				}
			}
			return text[:i], uint16(n), true
		}
	}
	return "", 0, false
}

func TestHasMode(t *testing.T) {
	for _, state := range states {
		for _, mode := range modes {
			want := mode != netlinksmc.ModeSMCR ||
				state != netlinksmc.StateInit && state != netlinksmc.StateListen && state != netlinksmc.StateClosed
			if got := hasMode(&netlinksmc.Socket{State: state, Mode: mode}); got != want {
				t.Errorf("%v %v: %v, want %v", state, mode, got, want)
			}
		}
	}
}
