// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Service is a service about whose connections a rule with the verdict Auto decides, and what it has learned.
type Service struct {
	// Role is Listen for the connections of a server, Connect for those of clients.
	Role Role
	// Peer is the address that clients connect to; it is not valid for a server.
	Peer netip.Addr
	// Port is the port that clients connect to, or the local one of a server.
	Port uint16
	// Verdict is what new connections are: SMC or TCP.
	Verdict Verdict
	// Paid and Unpaid are the connections that have ended for which SMC pays, and for which it does not. Open are those that have not
	// ended.
	Paid, Unpaid, Open uint64
	// Left is the time until the module forgets the service if no connection begins or ends.
	Left time.Duration
}

// String returns ":PORT" for a server, and "ADDRESS:PORT" for clients.
func (s Service) String() string {
	if s.Role == Listen {
		return fmt.Sprintf(":%d", s.Port)
	}
	return netip.AddrPortFrom(s.Peer, s.Port).String()
}

// Is reports whether the service is that of a use.
func (s Service) Is(use Use) bool {
	if use.Role == Listen {
		return s.Role == Listen && s.Port == use.Local
	}
	return s.Role == Connect && s.Port == use.Remote && s.Peer == use.Peer.Unmap().WithZone("")
}

// Services returns the services of the network namespace, servers first, in the order of their ports. Any user may read them. The error
// may be smcerr.ErrDumpInterrupted.
func (c *Client) Services(ctx context.Context) ([]Service, error) {
	const op = "read the services"
	replies, err := c.conn.Dump(ctx, c.family, netlinksmc.CmdServiceGet)
	if err != nil {
		return nil, requestError(op, err)
	}
	var services []Service
	for _, m := range replies {
		s, err := parseService(m.Data)
		if err != nil {
			return nil, &smcerr.Error{Op: op, Kind: smcerr.ErrMalformed, Err: err}
		}
		services = append(services, s)
	}
	slices.SortFunc(services, func(a, b Service) int {
		return cmp.Or(cmp.Compare(b.Role, a.Role), cmp.Compare(a.Port, b.Port), a.Peer.Compare(b.Peer))
	})
	return services, nil
}

// FlushServices has the module forget what all services of the network namespace have learned.
func (c *Client) FlushServices(ctx context.Context) error {
	return requestError("forget the services", c.conn.Set(ctx, c.family, netlinksmc.CmdServiceFlush, nil))
}

func parseService(data []byte) (s Service, err error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return Service{}, err
	}
	for ad.Next() {
		switch ad.Type() {
		case netlinksmc.AttrServiceRole:
			s.Role = Role(ad.Uint8())
		case netlinksmc.AttrServiceAddr:
			if s.Peer, err = parseAddress(ad.Bytes()); err != nil {
				return Service{}, err
			}
		case netlinksmc.AttrServicePort:
			s.Port = ad.Uint16()
		case netlinksmc.AttrServiceVerdict:
			s.Verdict = Verdict(ad.Uint8())
		case netlinksmc.AttrServicePaid:
			s.Paid = ad.Uint64()
		case netlinksmc.AttrServiceUnpaid:
			s.Unpaid = ad.Uint64()
		case netlinksmc.AttrServiceOpen:
			s.Open = ad.Uint64()
		case netlinksmc.AttrServiceLeft:
			s.Left = time.Duration(ad.Uint32()) * time.Second
		}
	}
	return s, ad.Err()
}
