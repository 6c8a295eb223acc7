// SPDX-License-Identifier: Apache-2.0

// Package convert decides which TCP sockets of a program become AF_SMC sockets: it chooses the method for the program, and has
// the rules for connections that may use SMC.
package convert

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/remedy"
)

// MostRules is the maximum number of ports, and of networks, in a list. The preload library has no room for more.
const MostRules = 64

// Ports is a range of ports, both ends included.
type Ports struct{ First, Last uint16 }

func (p Ports) String() string {
	if p.First == p.Last {
		return strconv.Itoa(int(p.First))
	}
	return fmt.Sprintf("%d-%d", p.First, p.Last)
}

// List is a set of ports and a set of networks.
type List struct {
	Ports    []Ports
	Networks []netip.Prefix
}

// Rules say which connections may use SMC. The zero value allows all.
type Rules struct {
	// Only contains the allowed ports and the allowed networks. If it contains no ports, all ports are allowed. If it contains
	// no networks, all networks are allowed.
	Only List
	// Not contains the forbidden ports and networks.
	Not List
}

// Any reports whether there is any rule.
func (r *Rules) Any() bool { return !r.Only.empty() || !r.Not.empty() }

// Match reports whether a connection to a, or the connections that a listener at a accepts, may use SMC. A listener on all
// addresses matches every network in Only and none in Not, so that its port decides.
func (r *Rules) Match(a netip.AddrPort) bool {
	addr := a.Addr().Unmap().WithZone("")
	everywhere := addr.IsUnspecified()
	switch {
	case len(r.Only.Ports) > 0 && !r.Only.hasPort(a.Port()):
		return false
	case len(r.Only.Networks) > 0 && !everywhere && !r.Only.hasAddr(addr):
		return false
	}
	return !r.Not.hasPort(a.Port()) && (everywhere || !r.Not.hasAddr(addr))
}

func (l *List) empty() bool { return len(l.Ports) == 0 && len(l.Networks) == 0 }

func (l *List) hasPort(port uint16) bool {
	return slices.ContainsFunc(l.Ports, func(p Ports) bool { return p.First <= port && port <= p.Last })
}

func (l *List) hasAddr(addr netip.Addr) bool {
	return slices.ContainsFunc(l.Networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// AddPorts adds ports as in "6379,8000-8100".
func (l *List) AddPorts(text string) error { return add(text, l.addPorts) }

// AddNetworks adds networks and addresses as in "10.0.0.0/8,fd00::1".
func (l *List) AddNetworks(text string) error { return add(text, l.addNetwork) }

// AddEither adds ports and networks. An item with a dot or a colon is a network.
func (l *List) AddEither(text string) error {
	return add(text, func(item string) error {
		if strings.ContainsAny(item, ".:") {
			return l.addNetwork(item)
		}
		return l.addPorts(item)
	})
}

// add adds every item of a list separated by commas.
func add(text string, one func(item string) error) error {
	for item := range strings.SplitSeq(text, ",") {
		if err := one(item); err != nil {
			return err
		}
	}
	return nil
}

func (l *List) addPorts(item string) error {
	first, last, isRange := strings.Cut(item, "-")
	p := Ports{}
	var ok bool
	if p.First, ok = parsePort(first); !ok {
		return portError(item)
	}
	p.Last = p.First
	if isRange {
		if p.Last, ok = parsePort(last); !ok {
			return portError(item)
		}
	}
	if p.Last < p.First {
		return remedy.Errorf("give the lower port first", "%q ends before it begins", item)
	}
	if len(l.Ports) == MostRules {
		return remedy.Errorf("combine ports into ranges", "more than %d ports and ranges", MostRules)
	}
	l.Ports = append(l.Ports, p)
	return nil
}

func portError(item string) error {
	return fmt.Errorf("%q is not a port from 1 to 65535, nor a range such as 8000-8100", item)
}

// parsePort parses a decimal number. It refuses signs, and leading zeros, which could mean an octal number.
func parsePort(s string) (uint16, bool) {
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil && s[0] != '0'
}

func (l *List) addNetwork(item string) error {
	p, err := netip.ParsePrefix(item)
	if err != nil {
		addr, err := netip.ParseAddr(item)
		if err != nil || addr.Zone() != "" {
			return fmt.Errorf("%q is not an address, nor a network such as 10.0.0.0/8 or fd00::/8", item)
		}
		p = netip.PrefixFrom(addr, addr.BitLen())
	}
	if addr := p.Addr(); addr.Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(addr.Unmap(), p.Bits()-96)
	}
	if len(l.Networks) == MostRules {
		return remedy.Errorf("merge them", "more than %d networks", MostRules)
	}
	l.Networks = append(l.Networks, p.Masked())
	return nil
}

// Names of the environment variables that pass rules to the preload library.
const (
	EnvPort = "SMC_PORT"
	EnvTo   = "SMC_TO"
	EnvNot  = "SMC_NOT"
)

// Env returns the environment variables that pass the rules to the preload library. Empty lists have no variable.
func (r *Rules) Env() []string {
	var env []string
	for _, v := range []struct {
		name  string
		items []string
	}{
		{EnvPort, texts(r.Only.Ports)},
		{EnvTo, texts(r.Only.Networks)},
		{EnvNot, append(texts(r.Not.Ports), texts(r.Not.Networks)...)},
	} {
		if len(v.items) > 0 {
			env = append(env, v.name+"="+strings.Join(v.items, ","))
		}
	}
	return env
}

func texts[T fmt.Stringer](items []T) []string {
	var out []string
	for _, item := range items {
		out = append(out, item.String())
	}
	return out
}
