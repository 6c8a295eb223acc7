// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Path describes the path to a peer.
type Path struct {
	// Host is the name or address that the user gave, and Peer its address.
	Host string
	Peer netip.Addr
	// ResolveErr and RouteErr are the errors of finding the address and the route.
	ResolveErr, RouteErr error
	// Local means that the peer is this host.
	Local bool
	// Interface is the outgoing interface, Source the source address, and Gateway the router, invalid if there is none.
	Interface       string
	Source, Gateway netip.Addr
	// MTU is the MTU of the route, 0 if the route does not set one.
	MTU int
	// Neighbour is the state of the next hop: "reachable", "failed" and the like, empty if it is unknown.
	Neighbour string
}

// Resolve finds the address of a host. It prefers IPv4 addresses, unless ipv6 asks for an IPv6 address.
func Resolve(ctx context.Context, host string, ipv6 bool) (netip.Addr, error) {
	network := "ip"
	if ipv6 {
		network = "ip6"
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, a := range addrs {
		if a.Unmap().Is4() && !ipv6 {
			return a.Unmap(), nil
		}
	}
	for _, a := range addrs {
		if !a.Unmap().Is4() {
			return a, nil
		}
	}
	return netip.Addr{}, errors.New("no such address")
}

// ReadPath finds the path to a peer.
func (r Reader) ReadPath(s *Snapshot, host string, peer netip.Addr) {
	p := &Path{Host: host, Peer: peer}
	s.Path = p
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		p.RouteErr = err
		return
	}
	defer h.Close()
	routes, err := h.RouteGet(peer.AsSlice())
	if err == nil && len(routes) == 0 {
		err = unix.ENETUNREACH
	}
	if err != nil {
		p.RouteErr = err
		return
	}
	rt := routes[0]
	p.MTU = rt.MTU
	p.Source, _ = netip.AddrFromSlice(rt.Src)
	p.Source = p.Source.Unmap()
	hop := rt.Gw
	if rt.Via != nil {
		if via, ok := rt.Via.(*netlink.Via); ok {
			hop = via.Addr
		}
	}
	p.Gateway, _ = netip.AddrFromSlice(hop)
	p.Gateway = p.Gateway.Unmap()
	for _, i := range s.Interfaces {
		if i.Index == rt.LinkIndex {
			p.Interface = i.Name
		}
		for _, a := range i.Addresses {
			p.Local = p.Local || a.Addr() == peer.Unmap()
		}
	}
	p.Local = p.Local || peer.IsLoopback()
	if !p.Local {
		p.Neighbour = neighbour(h, rt.LinkIndex, p)
	}
}

// neighbour returns the state of the next hop.
func neighbour(h *netlink.Handle, ifindex int, p *Path) string {
	hop := p.Peer
	if p.Gateway.IsValid() {
		hop = p.Gateway
	}
	list, err := h.NeighList(ifindex, netlink.FAMILY_ALL)
	if err != nil {
		return ""
	}
	for _, n := range list {
		addr, ok := netip.AddrFromSlice(n.IP)
		if !ok || addr.Unmap() != hop.Unmap() {
			continue
		}
		switch {
		case n.State&netlink.NUD_FAILED != 0:
			return "failed"
		case n.State&netlink.NUD_INCOMPLETE != 0:
			return "incomplete"
		case n.State == 0:
			return ""
		}
		return "reachable"
	}
	return ""
}

// String returns the path as words for messages.
func (p *Path) String() string {
	text := fmt.Sprintf("%s by %s", p.Peer, p.Interface)
	if p.Gateway.IsValid() {
		text += fmt.Sprintf(" and router %s", p.Gateway)
	}
	return text
}
