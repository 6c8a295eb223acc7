// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

type linkGroupsRJSON struct {
	Schema     int              `json:"schema"`
	Technology string           `json:"technology"`
	LinkGroups []linkGroupRJSON `json:"linkgroups"`
}

type linkGroupRJSON struct {
	ID      string                   `json:"id"`
	Role    netlinksmc.Role          `json:"role"`
	Type    netlinksmc.LinkGroupType `json:"type"`
	VLAN    uint8                    `json:"vlan"`
	PNETID  string                   `json:"pnet_id"`
	Conns   uint32                   `json:"connections"`
	Version uint8                    `json:"version"`
	// version 2
	Peer     *peerJSON                  `json:"peer,omitempty"`
	Direct   netlinksmc.Optional[bool]  `json:"direct,omitzero"`
	MaxConns netlinksmc.Optional[uint8] `json:"max_connections,omitzero"`
	MaxLinks netlinksmc.Optional[uint8] `json:"max_links,omitzero"`
	// of the network namespace
	NetCookie   netlinksmc.Optional[uint64]                `json:"netns_cookie,omitzero"`
	BufType     netlinksmc.Optional[netlinksmc.BufferType] `json:"buffer_type,omitzero"`
	SndbufBytes netlinksmc.Optional[uint64]                `json:"sndbuf_bytes,omitzero"`
	RMBBytes    netlinksmc.Optional[uint64]                `json:"rmb_bytes,omitzero"`
	Links       []linkJSON                                 `json:"links"`
}

// peerJSON is the description that a peer with SMC version 2 has sent of itself.
type peerJSON struct {
	Release uint8             `json:"release"`
	Host    string            `json:"host"`
	OS      netlinksmc.PeerOS `json:"os"`
	EID     string            `json:"eid"`
}

type linkJSON struct {
	// the last two digits of `uid`, decimal; `smcr link delete` takes them hexadecimal
	ID      uint8                `json:"id"`
	State   netlinksmc.LinkState `json:"state"`
	NetDev  string               `json:"netdev,omitempty"`
	Ifindex uint32               `json:"ifindex,omitempty"`
	IBDev   string               `json:"ibdev"`
	IBPort  uint8                `json:"ibport"`
	GID     string               `json:"gid"`
	PeerGID string               `json:"peer_gid"`
	UID     string               `json:"uid"`
	PeerUID string               `json:"peer_uid"`
	Conns   uint32               `json:"connections"`
}

type linkGroupsDJSON struct {
	Schema     int              `json:"schema"`
	Technology string           `json:"technology"`
	LinkGroups []linkGroupDJSON `json:"linkgroups"`
}

type linkGroupDJSON struct {
	ID         string `json:"id"`
	GID        string `json:"gid"`
	PeerGID    string `json:"peer_gid"`
	ExtGID     string `json:"ext_gid,omitempty"`
	PeerExtGID string `json:"peer_ext_gid,omitempty"`
	VLAN       uint8  `json:"vlan"`
	PNETID     string `json:"pnet_id"`
	Conns      uint32 `json:"connections"`
	Version    uint8  `json:"version"`
	CHID       string `json:"chid,omitempty"`
	// version 2
	Peer        *peerJSON                   `json:"peer,omitempty"`
	SndbufBytes netlinksmc.Optional[uint64] `json:"sndbuf_bytes,omitzero"`
	DMBBytes    netlinksmc.Optional[uint64] `json:"dmb_bytes,omitzero"`
}

func newLinkGroupsR(groups []netlinksmc.LinkGroupR, ifname func(uint32) string) linkGroupsRJSON {
	doc := linkGroupsRJSON{Schema: 1, Technology: "smcr", LinkGroups: make([]linkGroupRJSON, 0, len(groups))}
	for _, g := range groups {
		version, peer := newPeer(g.V2)
		j := linkGroupRJSON{
			ID: hex8(g.ID), Role: g.Role, Type: g.Type, VLAN: g.VLAN, PNETID: g.PNETID, Conns: g.Conns,
			Version: version, Peer: peer, Direct: g.Direct, MaxConns: g.MaxConns, MaxLinks: g.MaxLinks,
			NetCookie: g.NetCookie, BufType: g.BufType, SndbufBytes: g.SndbufAlloc, RMBBytes: g.RMBAlloc,
			Links: make([]linkJSON, 0, len(g.Links)),
		}
		for _, l := range g.Links {
			j.Links = append(j.Links, linkJSON{
				ID: l.ID, State: l.State, NetDev: ifname(l.NetIfindex), Ifindex: l.NetIfindex,
				IBDev: l.IBDev, IBPort: l.IBPort, GID: l.GID, PeerGID: l.PeerGID,
				UID: hex8(l.UID), PeerUID: hex8(l.PeerUID), Conns: l.Conns,
			})
		}
		doc.LinkGroups = append(doc.LinkGroups, j)
	}
	return doc
}

func newLinkGroupsD(groups []netlinksmc.LinkGroupD) linkGroupsDJSON {
	doc := linkGroupsDJSON{Schema: 1, Technology: "smcd", LinkGroups: make([]linkGroupDJSON, 0, len(groups))}
	for _, g := range groups {
		version, peer := newPeer(g.V2)
		j := linkGroupDJSON{
			ID: hex8(g.ID), GID: hex16(g.GID), PeerGID: hex16(g.PeerGID), VLAN: g.VLAN, PNETID: g.PNETID,
			Conns: g.Conns, Version: version, Peer: peer, SndbufBytes: g.SndbufAlloc, DMBBytes: g.DMBAlloc,
		}
		if v, ok := g.ExtGID.Get(); ok {
			j.ExtGID = hex16(v)
		}
		if v, ok := g.PeerExtGID.Get(); ok {
			j.PeerExtGID = hex16(v)
		}
		if v, ok := g.CHID.Get(); ok {
			j.CHID = hex4(uint32(v))
		}
		doc.LinkGroups = append(doc.LinkGroups, j)
	}
	return doc
}

func newPeer(v2 *netlinksmc.LinkGroupV2) (version uint8, peer *peerJSON) {
	if v2 == nil {
		return 1, nil
	}
	return v2.Version, &peerJSON{Release: v2.Release, Host: v2.PeerHost, OS: v2.PeerOS, EID: v2.EID}
}

func hex4(v uint32) string  { return fmt.Sprintf("%04x", v) }
func hex8(v uint32) string  { return fmt.Sprintf("%08x", v) }
func hex16(v uint64) string { return fmt.Sprintf("%016x", v) }
