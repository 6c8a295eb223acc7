// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"errors"

	"github.com/mdlayher/genetlink"
)

// errStrayLink means that a link came without a link group before it.
var errStrayLink = errors.New("LINK_SMCR: a link without its link group")

// parseLinkGroupsR decodes the dumps of SMC-R link groups. In the one with links each group is followed by its links,
// in messages of their own.
func parseLinkGroupsR(replies []genetlink.Message) ([]LinkGroupR, error) {
	groups := make([]LinkGroupR, 0, len(replies))
	attrs := fields{
		genLinkGroupR: nest("LGR_SMCR", func(b []byte) error {
			g, err := parseLinkGroupR(b)
			if err != nil {
				return err
			}
			groups = append(groups, g)
			return nil
		}),
		genLinkR: nest("LINK_SMCR", func(b []byte) error {
			if len(groups) == 0 {
				return errStrayLink
			}
			l, err := parseLink(b)
			if err != nil {
				return err
			}
			g := &groups[len(groups)-1]
			g.Links = append(g.Links, l)
			return nil
		}),
	}
	if err := forEach(replies, attrs); err != nil {
		return nil, err
	}
	return groups, nil
}

func parseLinkGroupR(b []byte) (LinkGroupR, error) {
	var g LinkGroupR
	var v2 LinkGroupV2
	err := fields{
		1: required(to("LGR_R_ID", getU32, &g.ID)),
		2: enum("LGR_R_ROLE", getU8, &g.Role),
		3: enum("LGR_R_TYPE", getU8, &g.Type),
		4: to("LGR_R_PNETID", getPNETID, &g.PNETID),
		5: to("LGR_R_VLAN_ID", getU8, &g.VLAN),
		6: to("LGR_R_CONNS_NUM", getU32, &g.Conns),
		7: nest("LGR_R_V2_COMMON", func(b []byte) error {
			g.V2 = &v2
			return parseLinkGroupV2(b, &v2)
		}),
		8: nest("LGR_R_V2", fields{
			1: opt("LGR_R_V2_DIRECT", getBool, &g.Direct),
			2: opt("LGR_R_V2_MAX_CONNS", getU8, &g.MaxConns),
			3: opt("LGR_R_V2_MAX_LINKS", getU8, &g.MaxLinks),
		}.parse),
		9: opt("LGR_R_NET_COOKIE", getU64, &g.NetCookie),
		11: opt("LGR_R_BUF_TYPE", func(b []byte) (BufferType, error) {
			v, err := getU8(b)
			return BufferType(v), err
		}, &g.BufType),
		12: opt("LGR_R_SNDBUF_ALLOC", getUint, &g.SndbufAlloc),
		13: opt("LGR_R_RMB_ALLOC", getUint, &g.RMBAlloc),
	}.parse(b)
	return g, err
}

// parseLinkGroupV2 decodes what both kinds of link groups share. The numbers start at zero here.
func parseLinkGroupV2(b []byte, v2 *LinkGroupV2) error {
	return fields{
		0: required(to("LGR_V2_VER", getU8, &v2.Version)),
		1: to("LGR_V2_REL", getU8, &v2.Release),
		2: enum("LGR_V2_OS", getU8, &v2.PeerOS),
		3: to("LGR_V2_NEG_EID", getName, &v2.EID),
		4: to("LGR_V2_PEER_HOST", getName, &v2.PeerHost),
	}.parse(b)
}

func parseLink(b []byte) (Link, error) {
	var l Link
	err := fields{
		1:  required(to("LINK_ID", getU8, &l.ID)),
		2:  to("LINK_IB_DEV", getString, &l.IBDev),
		3:  to("LINK_IB_PORT", getU8, &l.IBPort),
		4:  to("LINK_GID", getString, &l.GID),
		5:  to("LINK_PEER_GID", getString, &l.PeerGID),
		6:  to("LINK_CONN_CNT", getU32, &l.Conns),
		7:  to("LINK_NET_DEV", getU32, &l.NetIfindex),
		8:  to("LINK_UID", getUID, &l.UID),
		9:  to("LINK_PEER_UID", getUID, &l.PeerUID),
		10: enum("LINK_STATE", getU32, &l.State),
	}.parse(b)
	return l, err
}

func parseLinkGroupsD(replies []genetlink.Message) ([]LinkGroupD, error) {
	groups := make([]LinkGroupD, 0, len(replies))
	err := forEach(replies, fields{genLinkGroupD: nest("LGR_SMCD", func(b []byte) error {
		g, err := parseLinkGroupD(b)
		if err != nil {
			return err
		}
		groups = append(groups, g)
		return nil
	})})
	if err != nil {
		return nil, err
	}
	return groups, nil
}

func parseLinkGroupD(b []byte) (LinkGroupD, error) {
	var g LinkGroupD
	var v2 LinkGroupV2
	err := fields{
		1: required(to("LGR_D_ID", getU32, &g.ID)),
		2: to("LGR_D_GID", getU64, &g.GID),
		3: to("LGR_D_PEER_GID", getU64, &g.PeerGID),
		4: to("LGR_D_VLAN_ID", getU8, &g.VLAN),
		5: to("LGR_D_CONNS_NUM", getU32, &g.Conns),
		6: to("LGR_D_PNETID", getPNETID, &g.PNETID),
		7: opt("LGR_D_CHID", getCHID, &g.CHID),
		9: nest("LGR_D_V2_COMMON", func(b []byte) error {
			g.V2 = &v2
			return parseLinkGroupV2(b, &v2)
		}),
		10: opt("LGR_D_EXT_GID", getU64, &g.ExtGID),
		11: opt("LGR_D_PEER_EXT_GID", getU64, &g.PeerExtGID),
		12: opt("LGR_D_SNDBUF_ALLOC", getUint, &g.SndbufAlloc),
		13: opt("LGR_D_DMB_ALLOC", getUint, &g.DMBAlloc),
	}.parse(b)
	return g, err
}
