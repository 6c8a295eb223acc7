// SPDX-License-Identifier: Apache-2.0

package smcss

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// endpointMatch is the value of --local or --peer: an address range, a port, or both.
type endpointMatch struct {
	// prefix is invalid if every address matches.
	prefix netip.Prefix
	// port is 0 if every port matches.
	port uint16
}

// parseEndpoint reads ADDRESS, ADDRESS/LENGTH, ADDRESS:PORT, [ADDRESS]:PORT or :PORT.
func parseEndpoint(text string) (endpointMatch, error) {
	if p, err := netip.ParsePrefix(text); err == nil {
		return endpointMatch{prefix: unmapPrefix(p)}, nil
	}
	host, port, hasPort := splitPort(text)
	var m endpointMatch
	if hasPort {
		n, err := parsePort(port)
		if err != nil {
			return endpointMatch{}, err
		}
		m.port = n
		if host == "" || host == "*" {
			return m, nil
		}
	}
	a, err := netip.ParseAddr(host)
	if err != nil || a.Zone() != "" {
		return endpointMatch{}, fmt.Errorf(
			"%q is not an address: use 192.0.2.1, 192.0.2.0/24, 192.0.2.1:80, 2001:db8::1, [2001:db8::1]:80 or :80", text)
	}
	a = a.Unmap()
	m.prefix = netip.PrefixFrom(a, a.BitLen())
	return m, nil
}

// splitPort cuts the port off text. A bare IPv6 address has colons but no port.
func splitPort(text string) (host, port string, ok bool) {
	if inner, found := strings.CutPrefix(text, "["); found {
		if host, port, ok = strings.Cut(inner, "]:"); ok {
			return host, port, true
		}
		if host, found = strings.CutSuffix(inner, "]"); found {
			return host, "", false
		}
	}
	if strings.Count(text, ":") != 1 {
		return text, "", false
	}
	return strings.Cut(text, ":")
}

func parsePort(text string) (uint16, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is not a port: use a number from 1 to 65535", text)
	}
	return uint16(n), nil
}

// unmapPrefix converts a range of IPv4-mapped addresses to the IPv4 range, because match compares unmapped addresses.
func unmapPrefix(p netip.Prefix) netip.Prefix {
	if a := p.Addr(); a.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
	}
	return p.Masked()
}

// match reports whether ap is selected. A socket that is not connected has no address, and matches only if every address does.
// IPv4 addresses match in either notation. The two wildcard addresses are the same, because the kernel does not distinguish
// them.
func (m endpointMatch) match(ap netip.AddrPort) bool {
	if m.port != 0 && m.port != ap.Port() {
		return false
	}
	if !m.prefix.IsValid() {
		return true
	}
	a := ap.Addr().Unmap()
	if !a.IsValid() {
		return false
	}
	if m.prefix.IsSingleIP() && m.prefix.Addr().IsUnspecified() {
		return a.IsUnspecified()
	}
	return m.prefix.Contains(a)
}
