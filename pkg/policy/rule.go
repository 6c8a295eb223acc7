// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"net/netip"
	"slices"
	"strings"
)

// Verdict is what a rule says about a socket.
type Verdict uint8

// The verdicts.
const (
	// None means that no rule matches.
	None Verdict = 0
	// SMC means that the socket uses SMC if its peer and the devices allow it.
	SMC Verdict = 1
	// TCP means that the socket uses TCP.
	TCP Verdict = 2
	// Auto means that each connection uses what its Service has learned.
	Auto Verdict = 3
)

// String returns "none", "smc", "tcp" or "auto".
func (v Verdict) String() string {
	switch v {
	case SMC:
		return "smc"
	case TCP:
		return "tcp"
	case Auto:
		return "auto"
	}
	return "none"
}

// Role is what a socket does with a connection. Any is both.
type Role uint8

// The roles, which are bits.
const (
	Connect Role = 1
	Listen  Role = 2
	Any     Role = Connect | Listen
)

// String returns "connect", "listen" or "any".
func (r Role) String() string {
	switch r {
	case Connect:
		return "connect"
	case Listen:
		return "listen"
	}
	return "any"
}

// Limits of the module.
const (
	// MaxRules is the number of rules of a network namespace.
	MaxRules = 1024
	// MaxList is the number of entries of a list in a rule.
	MaxList = 64
	// MaxName and MaxCgroup are the bytes of a name and of the path of a control group.
	MaxName   = 31
	MaxCgroup = 255
)

// PortRange is a range of ports; First and Last belong to it.
type PortRange struct{ First, Last uint16 }

// Rule is a rule of the policy: a verdict and its conditions, all of which have to hold. An empty condition always does.
type Rule struct {
	// ID is the number that the module has given the rule: 0 for a new one. A change keeps the rule, with its counters, that has
	// this number, and ignores the other fields.
	ID uint32
	// Name is the name of the rule; it may be empty.
	Name string
	// Verdict is SMC, TCP or Auto.
	Verdict Verdict
	// Role is Connect, Listen or Any.
	Role Role
	// User and Group are those that the socket belongs to; nil means anybody.
	User, Group *uint32
	// Cgroup is the path of a control group of version 2, from the root of the hierarchy, with a slash at its beginning. It stands for
	// all groups below, too.
	Cgroup string
	// Ports are those of the service: the local port of a listener, the remote port of a client.
	Ports []PortRange
	// LocalPorts and RemotePorts are those of this host and of the peer. The remote port of a listener is not known, nor is the local
	// port of a client that has not called bind: only an empty list matches these.
	LocalPorts, RemotePorts []PortRange
	// Networks are those that the address of the peer is in. For a listener the module asks for each of its connections.
	Networks []netip.Prefix
	// Counters are filled in by Client.Get.
	Counters Counters
}

// Counters count the decisions of a rule, and the connections that followed.
type Counters struct {
	// Decisions are the calls of connect and listen that the rule has decided.
	Decisions uint64
	// SMC and TCP are the connections of these sockets, by their outcome. Connections to a TCP listener do not count.
	SMC, TCP uint64
	// Bytes counts the data that ended connections moved by SMC, in both directions.
	Bytes uint64
}

// Who is the maker of a socket.
type Who struct {
	User, Group uint32
	// Cgroup is the path as in a Rule; "" stands for an unknown one.
	Cgroup string
}

// Use is what a socket is used for.
type Use struct {
	// Role is Connect or Listen.
	Role Role
	// Local and Remote are ports, 0 if they are not known.
	Local, Remote uint16
	// Peer is the address of the peer: of a connection, if the socket listens.
	Peer netip.Addr
}

// Matches reports whether the conditions of the rule hold.
func (r Rule) Matches(who Who, use Use) bool {
	service := use.Remote
	if use.Role == Listen {
		service = use.Local
	}
	return r.Role&use.Role != 0 && (r.User == nil || *r.User == who.User) && (r.Group == nil || *r.Group == who.Group) &&
		inCgroup(who.Cgroup, r.Cgroup) && inPorts(service, r.Ports) && inPorts(use.Local, r.LocalPorts) &&
		inPorts(use.Remote, r.RemotePorts) && inNetworks(use.Peer, r.Networks)
}

func inCgroup(path, top string) bool {
	return top == "" || path != "" && top == "/" || path == top || strings.HasPrefix(path, top+"/")
}

func inPorts(port uint16, list []PortRange) bool {
	return len(list) == 0 || port != 0 && slices.ContainsFunc(list, func(r PortRange) bool { return r.First <= port && port <= r.Last })
}

func inNetworks(addr netip.Addr, list []netip.Prefix) bool {
	return len(list) == 0 || slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(addr.Unmap().WithZone("")) })
}

// Plan returns the indices of the rules that decide about the connections of a listener on a port, in their order: all but the last
// one ask for the peer's address. If the last one asks, too, no rule decides about the connections that none of them matches.
func (p Policy) Plan(who Who, port uint16) (rules []int) {
	for i, r := range p.Rules {
		nets := r.Networks
		r.Networks = nil
		if !p.Enabled || !r.Matches(who, Use{Role: Listen, Local: port}) {
			continue
		}
		rules = append(rules, i)
		if len(nets) == 0 {
			break
		}
	}
	return rules
}

// sameConditions reports whether two rules match the same sockets.
func (r Rule) sameConditions(o Rule) bool {
	same := func(a, b *uint32) bool { return a == b || a != nil && b != nil && *a == *b }
	return r.Role == o.Role && same(r.User, o.User) && same(r.Group, o.Group) && r.Cgroup == o.Cgroup && slices.Equal(r.Ports, o.Ports) &&
		slices.Equal(r.LocalPorts, o.LocalPorts) && slices.Equal(r.RemotePorts, o.RemotePorts) && slices.Equal(r.Networks, o.Networks)
}

// Check reports a rule that the module would refuse, as a *SyntaxError. Parse returns no such rule.
func (r Rule) Check() error {
	bad := func(text string) error { return &SyntaxError{Text: text} }
	ports := slices.Concat(r.Ports, r.LocalPorts, r.RemotePorts)
	switch {
	case r.Verdict != SMC && r.Verdict != TCP && r.Verdict != Auto:
		return bad("a rule says smc, tcp or auto")
	case r.Role == 0 || r.Role > Any:
		return bad("the role of a rule is connect, listen or any")
	case len(r.Name) > MaxName:
		return bad("the name of a rule is too long")
	case r.Cgroup != "" && (r.Cgroup[0] != '/' || len(r.Cgroup) > MaxCgroup):
		return bad("the path of a control group begins with a slash, and has 255 bytes at most")
	case max(len(r.Ports), len(r.LocalPorts), len(r.RemotePorts), len(r.Networks)) > MaxList:
		return bad("a list of a rule is too long")
	case slices.ContainsFunc(ports, func(p PortRange) bool { return p.First == 0 || p.First > p.Last }):
		return bad("a rule has no port 0, and the first port of a range is not the higher one")
	case slices.ContainsFunc(r.Networks, func(p netip.Prefix) bool { return !p.IsValid() }):
		return bad("a network of a rule is not valid")
	}
	return nil
}

// Equal reports whether two rules are the same, except for their numbers and counters.
func (r Rule) Equal(o Rule) bool {
	return r.Name == o.Name && r.Verdict == o.Verdict && r.sameConditions(o)
}

// Policy is the policy of a network namespace at one time.
type Policy struct {
	// Generation is its number, for changes.
	Generation uint32
	// Enabled is false if all connections that begin are TCP.
	Enabled bool
	// Inherited means that the rules of the initial network namespace decide, because this namespace has none and that one says so.
	Inherited bool
	// Rules are in the order in which they are evaluated.
	Rules []Rule
}

// Decide returns the verdict on a socket and the index of the rule that decides, -1 if there is none.
func (p Policy) Decide(who Who, use Use) (Verdict, int) {
	if !p.Enabled {
		return TCP, -1
	}
	i := slices.IndexFunc(p.Rules, func(r Rule) bool { return r.Matches(who, use) })
	if i < 0 {
		return None, -1
	}
	return p.Rules[i].Verdict, i
}
