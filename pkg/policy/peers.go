// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"net/netip"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Peer is a host with which SMC was not possible. The module remembers it for a time, and connections with it are TCP.
type Peer struct {
	// Address is that of the peer.
	Address netip.Addr
	// Interface is the index of the interface that the socket was bound to, 0 for none.
	Interface uint32
	// Port is that of the service: the peer's if Role is Connect, else this host's.
	Port uint16
	// Role is what this host does: Connect or Listen.
	Role Role
	// Reason says why connections with the peer are TCP.
	Reason netlinksmc.Reason
	// PeerReason is the reason that the peer gave, 0 if it gave none.
	PeerReason netlinksmc.Reason
	// User is whose sockets it counts for, if Role is Connect: users cannot keep SMC from each other.
	User uint32
	// Left is the time until the module forgets the peer, in whole seconds.
	Left time.Duration
}

// Peers returns the peers of the network namespace, first those that connect to this host. Any user may read them. The error may be
// smcerr.ErrNotSupported, from a module that remembers no peers.
func (c *Client) Peers(ctx context.Context) ([]Peer, error) {
	const op = "read the peers"
	replies, err := c.conn.Dump(ctx, c.family, netlinksmc.CmdPeerGet)
	if err != nil {
		return nil, requestError(op, err)
	}
	peers := make([]Peer, 0, len(replies))
	for _, m := range replies {
		p, err := parsePeer(m)
		if err != nil {
			return nil, &smcerr.Error{Op: op, Kind: smcerr.ErrMalformed, Err: err}
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// ForgetPeers has the module forget all peers of the network namespace: the next connection with each tries SMC.
func (c *Client) ForgetPeers(ctx context.Context) error {
	return requestError("forget the peers", c.conn.Set(ctx, c.family, netlinksmc.CmdPeerFlush, nil))
}

func parsePeer(m genetlink.Message) (p Peer, err error) {
	ad, err := netlink.NewAttributeDecoder(m.Data)
	if err != nil {
		return Peer{}, err
	}
	for ad.Next() {
		switch ad.Type() {
		case netlinksmc.AttrPeerAddress:
			if p.Address, err = parseAddress(ad.Bytes()); err != nil {
				return Peer{}, err
			}
		case netlinksmc.AttrPeerIfindex:
			p.Interface = ad.Uint32()
		case netlinksmc.AttrPeerPort:
			p.Port = ad.Uint16()
		case netlinksmc.AttrPeerRole:
			p.Role = Role(ad.Uint8())
		case netlinksmc.AttrPeerReason:
			p.Reason = netlinksmc.Reason(ad.Uint32())
		case netlinksmc.AttrPeerDiagnosis:
			p.PeerReason = netlinksmc.Reason(ad.Uint32())
		case netlinksmc.AttrPeerUID:
			p.User = ad.Uint32()
		case netlinksmc.AttrPeerSeconds:
			p.Left = time.Duration(ad.Uint32()) * time.Second
		}
	}
	return p, ad.Err()
}
