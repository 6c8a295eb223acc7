// SPDX-License-Identifier: Apache-2.0

package smcrstats

import (
	"fmt"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/tool/statdoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

type document struct {
	Schema     int    `json:"schema"`
	Hostname   string `json:"hostname"`
	SMCVersion uint8  `json:"smc_version" schema1:",dotted"`
	SMCRelease uint8  `json:"smc_release" schema1:"-"`
	statdoc.Host
	SMCR *technology `json:"smcr,omitempty"`
	SMCD *technology `json:"smcd,omitempty"`
}

type technology struct {
	statdoc.Tech
	// per second, with `--watch`, from the second round
	Rates *rates `json:"rates,omitempty"`
	// with `-d`
	LinkGroups *[]linkGroup `json:"linkgroups,omitempty"`
}

// rates are per second.
type rates struct {
	RxBytes    float64 `json:"rx_bytes"`
	TxBytes    float64 `json:"tx_bytes"`
	RxRequests float64 `json:"rx_requests"`
	TxRequests float64 `json:"tx_requests"`
}

// linkGroup is a link group of either technology. SMC-R has role, type, rmb_bytes and links, SMC-D has dmb_bytes.
type linkGroup struct {
	ID          string                      `json:"linkgroup_id" schema1:"id"`
	Role        string                      `json:"role,omitempty" schema1:",clnt"`
	Type        string                      `json:"linkgroup_type,omitempty" schema1:"type"`
	PNETID      string                      `json:"pnet_id,omitzero" schema1:",keep"`
	Conns       uint32                      `json:"connections"`
	SndbufBytes netlinksmc.Optional[uint64] `json:"sndbuf_bytes,omitzero"`
	RMBBytes    netlinksmc.Optional[uint64] `json:"rmb_bytes,omitzero"`
	DMBBytes    netlinksmc.Optional[uint64] `json:"dmb_bytes,omitzero"`
	Links       *[]link                     `json:"links,omitempty"`
}

type link struct {
	ID     uint8  `json:"link_id" schema1:"id"`
	State  string `json:"state"`
	NetDev string `json:"netdev,omitempty"`
	IBDev  string `json:"device" schema1:"ibdev"`
	IBPort uint8  `json:"port" schema1:"ibport"`
	Conns  uint32 `json:"connections"`
	// as in `smcr linkgroup`
	TxBytes netlinksmc.Optional[uint64] `json:"bytes_sent,omitzero" schema1:"-"`
	// as in `smcr linkgroup`
	RxBytes netlinksmc.Optional[uint64] `json:"bytes_received,omitzero" schema1:"-"`
}

func (o *options) newDocument(v view) document {
	doc := document{
		Schema: jsondoc.Schema, Hostname: v.info.Hostname,
		SMCVersion: v.info.Version, SMCRelease: v.info.Release,
		Host: statdoc.NewHost(v.reading, o.env.Reason),
	}
	if !o.onlyD {
		doc.SMCR = &technology{Tech: statdoc.NewTech(&v.reading.SMCR), Rates: newRates(techDelta(v, false), v.seconds)}
		if o.details {
			doc.SMCR.LinkGroups = o.newLinkGroupsR(v.groupsR)
		}
	}
	if !o.onlyR {
		doc.SMCD = &technology{Tech: statdoc.NewTech(&v.reading.SMCD), Rates: newRates(techDelta(v, true), v.seconds)}
		if o.details {
			doc.SMCD.LinkGroups = newLinkGroupsD(v.groupsD)
		}
	}
	return doc
}

func newRates(delta *netlinksmc.TechStats, seconds float64) *rates {
	if delta == nil {
		return nil
	}
	per := func(n uint64) float64 { return float64(n) / seconds }
	return &rates{per(delta.RxBytes), per(delta.TxBytes), per(delta.RxCount), per(delta.TxCount)}
}

func (o *options) newLinkGroupsR(groups []netlinksmc.LinkGroupR) *[]linkGroup {
	out := make([]linkGroup, 0, len(groups))
	for _, g := range groups {
		links := make([]link, 0, len(g.Links))
		for _, l := range g.Links {
			links = append(links, link{l.ID, l.State.String(), o.ifname(l.NetIfindex), l.IBDev, l.IBPort, l.Conns, l.TxBytes, l.RxBytes})
		}
		out = append(out, linkGroup{
			ID: fmt.Sprintf("%08x", g.ID), Role: jsondoc.Role(g.Role), Type: g.Type.String(), PNETID: g.PNETID,
			Conns: g.Conns, SndbufBytes: g.SndbufAlloc, RMBBytes: g.RMBAlloc, Links: &links,
		})
	}
	return &out
}

func newLinkGroupsD(groups []netlinksmc.LinkGroupD) *[]linkGroup {
	out := make([]linkGroup, 0, len(groups))
	for _, g := range groups {
		out = append(out, linkGroup{
			ID: fmt.Sprintf("%08x", g.ID), PNETID: g.PNETID, Conns: g.Conns,
			SndbufBytes: g.SndbufAlloc, DMBBytes: g.DMBAlloc,
		})
	}
	return &out
}
