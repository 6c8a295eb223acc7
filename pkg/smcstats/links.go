// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"slices"
	"strings"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

// lostReasons lists the counters of LostLinks in its order.
var lostReasons = []Counter[netlinksmc.LostLinks]{
	{"NOT_SENT", func(l *netlinksmc.LostLinks) *uint64 { return &l.NotSent }},
	{"NOT_RECEIVED", func(l *netlinksmc.LostLinks) *uint64 { return &l.NotReceived }},
	{"NOT_POSTED", func(l *netlinksmc.LostLinks) *uint64 { return &l.NotPosted }},
	{"NOT_REGISTERED", func(l *netlinksmc.LostLinks) *uint64 { return &l.NotRegistered }},
	{"NO_MESSAGE", func(l *netlinksmc.LostLinks) *uint64 { return &l.NoMessage }},
	{"EVENT", func(l *netlinksmc.LostLinks) *uint64 { return &l.Event }},
	{"NO_PORT", func(l *netlinksmc.LostLinks) *uint64 { return &l.NoPort }},
	{"DELETED", func(l *netlinksmc.LostLinks) *uint64 { return &l.Deleted }},
	{"SILENT", func(l *netlinksmc.LostLinks) *uint64 { return &l.Silent }},
	{"STUCK", func(l *netlinksmc.LostLinks) *uint64 { return &l.Stuck }},
	{"FLOODED", func(l *netlinksmc.LostLinks) *uint64 { return &l.Flooded }},
	{"FORGETFUL", func(l *netlinksmc.LostLinks) *uint64 { return &l.Forgetful }},
	{"AHEAD", func(l *netlinksmc.LostLinks) *uint64 { return &l.Ahead }},
	{"BAD_IMMEDIATE", func(l *netlinksmc.LostLinks) *uint64 { return &l.BadImmediate }},
	{"UNUSED", func(l *netlinksmc.LostLinks) *uint64 { return &l.Unused }},
	{"BAD_LLC", func(l *netlinksmc.LostLinks) *uint64 { return &l.BadLLC }},
	{"OPERATOR", func(l *netlinksmc.LostLinks) *uint64 { return &l.Operator }},
	{"REPLACED", func(l *netlinksmc.LostLinks) *uint64 { return &l.Replaced }},
}

// LostReasons lists the counters of lost links by the names of their reasons in the trace event smckit:smc_link_fail, such as
// "NO_PORT".
func LostReasons() []Counter[netlinksmc.LostLinks] { return slices.Clone(lostReasons) }

// LostLinks is the number of links that were lost for any reason.
func LostLinks(l *netlinksmc.LostLinks) uint64 {
	var n uint64
	for _, c := range lostReasons {
		n += c.Value(l)
	}
	return n
}

// linkCounters lists all counters of LinkStats by their names in a baseline.
var linkCounters = makeLinkCounters()

func makeLinkCounters() []Counter[netlinksmc.LinkStats] {
	type links = netlinksmc.LinkStats
	all := []Counter[links]{
		{"added", func(l *links) *uint64 { return &l.Added }},
		{"refused", func(l *links) *uint64 { return &l.Refused }},
		{"refused_by_peer", func(l *links) *uint64 { return &l.RefusedByPeer }},
		{"not_added", func(l *links) *uint64 { return &l.NotAdded }},
		{"connections_moved", func(l *links) *uint64 { return &l.ConnsMoved }},
		{"connections_not_moved", func(l *links) *uint64 { return &l.ConnsNotMoved }},
	}
	for _, r := range lostReasons {
		all = append(all, Counter[links]{"lost_" + strings.ToLower(r.Name), func(l *links) *uint64 { return r.ptr(&l.Lost) }})
	}
	return all
}
