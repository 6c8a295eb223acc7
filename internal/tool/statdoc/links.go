// SPDX-License-Identifier: Apache-2.0

package statdoc

import (
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// Links counts links beside the first of a link group, links that failed, and connections whose link failed.
type Links struct {
	// links that were added to a link group beside its first link
	Added uint64 `json:"added"`
	// links that this host, as a client, has refused
	Refused uint64 `json:"refused"`
	// links that the peer has refused
	RefusedByPeer uint64 `json:"refused_by_peer"`
	// links that were being added when a time limit passed or an adapter failed
	NotAdded uint64 `json:"not_added"`
	// connections that continued over the other link of their link group
	ConnsMoved uint64 `json:"connections_moved"`
	// connections that could not continue, and ended with an error
	ConnsNotMoved uint64 `json:"connections_not_moved"`
	// links that failed; if a link group has no other link, it ends
	Lost LostLinks `json:"lost"`
}

// LostLinks counts links that failed.
type LostLinks struct {
	Total uint64 `json:"total"`
	LostReasons
}

// LostReasons has the reasons of the trace event smckit:smc_link_fail. Its fields are those of netlinksmc.LostLinks.
type LostReasons struct {
	// the adapter could not send, although it retried
	NotSent uint64 `json:"not_sent"`
	// the adapter could not receive
	NotReceived uint64 `json:"not_received"`
	// the adapter has refused a work request
	NotPosted uint64 `json:"not_posted"`
	// the adapter could not register a buffer
	NotRegistered uint64 `json:"not_registered"`
	// the peer sent data that is not an SMC message
	NoMessage uint64 `json:"no_message"`
	// the adapter has reported an error of the queue pair
	Event uint64 `json:"event"`
	// a port went down, lost its address, or was removed with its adapter
	NoPort uint64 `json:"no_port"`
	// the peer has deleted the link or the link group
	Deleted uint64 `json:"deleted"`
	// the peer did not answer the test of the link
	Silent uint64 `json:"silent"`
	// the adapter of the peer received nothing for ten seconds, or for one beside another link
	Stuck uint64 `json:"stuck"`
	// the peer requested more answers than it received
	Flooded uint64 `json:"flooded"`
	// the peer has not answered DELETE RKEY
	Forgetful uint64 `json:"forgetful"`
	// the peer has confirmed data that was not sent
	Ahead uint64 `json:"ahead"`
	// the peer has sent immediate data that is not valid
	BadImmediate uint64 `json:"bad_immediate"`
	// the first handshake of the link group has failed
	Unused uint64 `json:"unused"`
	// an LLC message was malformed, unknown or wrong
	BadLLC uint64 `json:"bad_llc"`
	// `smcr link delete`
	Operator uint64 `json:"operator"`
	// the link shared a port with another link, and a link over a port of its own replaced it
	Replaced uint64 `json:"replaced"`
}

// newLinks returns the JSON form of l, nil if there is none.
func newLinks(l *netlinksmc.LinkStats) *Links {
	if l == nil {
		return nil
	}
	return &Links{
		l.Added, l.Refused, l.RefusedByPeer, l.NotAdded, l.ConnsMoved, l.ConnsNotMoved,
		LostLinks{smcstats.LostLinks(&l.Lost), LostReasons(l.Lost)},
	}
}
