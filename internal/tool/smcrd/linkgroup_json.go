// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

type linkGroupsRJSON struct {
	Schema     int              `json:"schema"`
	Transport  string           `json:"transport" schema1:"technology"`
	LinkGroups []linkGroupRJSON `json:"linkgroups"`
}

type linkGroupRJSON struct {
	ID      string `json:"linkgroup_id" schema1:"id"`
	Role    string `json:"role" schema1:",clnt"`
	Type    string `json:"linkgroup_type" schema1:"type"`
	VLAN    uint8  `json:"vlan"`
	PNETID  string `json:"pnet_id,omitzero" schema1:",keep"`
	Conns   uint32 `json:"connections"`
	Version uint8  `json:"smc_version" schema1:"version"`
	// version 2
	Peer        *peerJSON                   `json:"peer_system,omitempty" schema1:"peer"`
	Direct      netlinksmc.Optional[bool]   `json:"direct,omitzero"`
	MaxConns    netlinksmc.Optional[uint8]  `json:"max_connections,omitzero"`
	MaxLinks    netlinksmc.Optional[uint8]  `json:"max_links,omitzero"`
	NetCookie   netlinksmc.Optional[uint64] `json:"netns_cookie,omitzero"`
	BufType     string                      `json:"buffer_type,omitzero"`
	SndbufBytes netlinksmc.Optional[uint64] `json:"sndbuf_bytes,omitzero"`
	RMBBytes    netlinksmc.Optional[uint64] `json:"rmb_bytes,omitzero"`
	Links       []linkJSON                  `json:"links"`
}

// peerJSON is the description that a peer with SMC version 2 has sent of itself.
type peerJSON struct {
	Release uint8  `json:"smc_release" schema1:"release"`
	Host    string `json:"hostname" schema1:"host"`
	OS      string `json:"os"`
	EID     string `json:"eid"`
}

type linkJSON struct {
	ID      uint8  `json:"link_id" schema1:"id"`
	State   string `json:"state"`
	NetDev  string `json:"netdev,omitempty"`
	Ifindex uint32 `json:"ifindex,omitempty"`
	IBDev   string `json:"device" schema1:"ibdev"`
	IBPort  uint8  `json:"port" schema1:"ibport"`
	GID     string `json:"gid"`
	PeerGID string `json:"peer_gid"`
	UID     string `json:"link_uid" schema1:"uid"`
	PeerUID string `json:"peer_link_uid" schema1:"peer_uid"`
	Conns   uint32 `json:"connections"`
	// from smckit's own module, in network namespaces that see all connections of the link group
	TxBytes netlinksmc.Optional[uint64] `json:"bytes_sent,omitzero" schema1:"-"`
	// as `bytes_sent`
	RxBytes netlinksmc.Optional[uint64] `json:"bytes_received,omitzero" schema1:"-"`
}

type linkGroupsDJSON struct {
	Schema     int              `json:"schema"`
	Transport  string           `json:"transport" schema1:"technology"`
	LinkGroups []linkGroupDJSON `json:"linkgroups"`
}

type linkGroupDJSON struct {
	ID         string `json:"linkgroup_id" schema1:"id"`
	GID        string `json:"gid"`
	PeerGID    string `json:"peer_gid"`
	ExtGID     string `json:"ext_gid,omitempty"`
	PeerExtGID string `json:"peer_ext_gid,omitempty"`
	VLAN       uint8  `json:"vlan"`
	PNETID     string `json:"pnet_id,omitzero" schema1:",keep"`
	Conns      uint32 `json:"connections"`
	Version    uint8  `json:"smc_version" schema1:"version"`
	CHID       string `json:"pchid,omitempty" schema1:"chid"`
	// version 2
	Peer        *peerJSON                   `json:"peer_system,omitempty" schema1:"peer"`
	SndbufBytes netlinksmc.Optional[uint64] `json:"sndbuf_bytes,omitzero"`
	DMBBytes    netlinksmc.Optional[uint64] `json:"dmb_bytes,omitzero"`
}

func newLinkGroupsR(groups []netlinksmc.LinkGroupR, ifname func(uint32) string) linkGroupsRJSON {
	doc := linkGroupsRJSON{Schema: jsondoc.Schema, Transport: techR.name(), LinkGroups: make([]linkGroupRJSON, 0, len(groups))}
	for _, g := range groups {
		version, peer := newPeer(g.V2)
		j := linkGroupRJSON{
			ID: hex8(g.ID), Role: jsondoc.Role(g.Role), Type: g.Type.String(), VLAN: g.VLAN, PNETID: g.PNETID, Conns: g.Conns,
			Version: version, Peer: peer, Direct: g.Direct, MaxConns: g.MaxConns, MaxLinks: g.MaxLinks,
			NetCookie: g.NetCookie, SndbufBytes: g.SndbufAlloc, RMBBytes: g.RMBAlloc, Links: make([]linkJSON, 0, len(g.Links)),
		}
		if v, ok := g.BufType.Get(); ok {
			j.BufType = v.String()
		}
		for _, l := range g.Links {
			j.Links = append(j.Links, linkJSON{
				ID: l.ID, State: l.State.String(), NetDev: ifname(l.NetIfindex), Ifindex: l.NetIfindex,
				IBDev: l.IBDev, IBPort: l.IBPort, GID: l.GID, PeerGID: l.PeerGID,
				UID: hex8(l.UID), PeerUID: hex8(l.PeerUID), Conns: l.Conns,
				TxBytes: l.TxBytes, RxBytes: l.RxBytes,
			})
		}
		doc.LinkGroups = append(doc.LinkGroups, j)
	}
	return doc
}

func newLinkGroupsD(groups []netlinksmc.LinkGroupD) linkGroupsDJSON {
	doc := linkGroupsDJSON{Schema: jsondoc.Schema, Transport: techD.name(), LinkGroups: make([]linkGroupDJSON, 0, len(groups))}
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
	return v2.Version, &peerJSON{Release: v2.Release, Host: v2.PeerHost, OS: v2.PeerOS.String(), EID: v2.EID}
}

func hex4(v uint32) string  { return fmt.Sprintf("%04x", v) }
func hex8(v uint32) string  { return fmt.Sprintf("%08x", v) }
func hex16(v uint64) string { return fmt.Sprintf("%016x", v) }
