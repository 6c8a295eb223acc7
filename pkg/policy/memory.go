// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Memory is the memory that SMC has for data. What is allocated is reserved first, and what is reserved is never above a ceiling, except
// after that was lowered.
type Memory struct {
	// Namespace is what the connections of the network namespace have.
	Namespace Pool
	// Host is what all connections and link groups of the host have; nil unless the network namespace is the initial one.
	Host *Pool
}

// Pool is the memory of a network namespace or of the host, in bytes.
type Pool struct {
	// Limit is the ceiling; 0 if there is none. That of the host is as much as TCP may have (net.ipv4.tcp_mem), unless it is set.
	Limit uint64
	// Reserved is the sum of RMB, SendRings, DMB and Queues. Peak is the most that it was at any time since the module was loaded,
	// or the network namespace was made.
	Reserved, Peak uint64
	// RMB and SendRings are buffers of SMC-R, DMB those of SMC-D, and Queues the messages in the queues of links, which count for the
	// host only. Within the host, a DMB has pages where there is data; four of them are always reserved.
	RMB, SendRings, DMB, Queues uint64
	// Idle are buffers that link groups keep for their next connections. They count for the host only.
	Idle uint64
	// Refused is the number of connections that are TCP because of a ceiling.
	Refused uint64
}

// Memory returns how much memory SMC has for data, and its ceilings. Any user may read it.
func (c *Client) Memory(ctx context.Context) (Memory, error) {
	const op = "read the memory of SMC"
	replies, err := c.conn.Dump(ctx, c.family, netlinksmc.CmdMemoryGet)
	if err != nil {
		return Memory{}, requestError(op, err)
	}
	if len(replies) != 1 {
		return Memory{}, &smcerr.Error{Op: op, Kind: smcerr.ErrMalformed}
	}
	m, err := parseMemory(replies[0].Data)
	if err != nil {
		return Memory{}, &smcerr.Error{Op: op, Kind: smcerr.ErrMalformed, Err: err}
	}
	return m, nil
}

func parseMemory(data []byte) (m Memory, err error) {
	ad, err := netlink.NewAttributeDecoder(data)
	if err != nil {
		return m, err
	}
	found := false
	for ad.Next() {
		switch ad.Type() {
		case netlinksmc.AttrMemoryNamespace:
			found = true
			ad.Nested(func(nad *netlink.AttributeDecoder) error { return parsePool(nad, &m.Namespace) })
		case netlinksmc.AttrMemoryHost:
			m.Host = new(Pool)
			ad.Nested(func(nad *netlink.AttributeDecoder) error { return parsePool(nad, m.Host) })
		}
	}
	if err := ad.Err(); err != nil {
		return m, err
	}
	if !found {
		return m, errors.New("the network namespace is missing")
	}
	return m, nil
}

func parsePool(ad *netlink.AttributeDecoder, p *Pool) error {
	fields := map[uint16]*uint64{
		netlinksmc.AttrPoolLimit: &p.Limit, netlinksmc.AttrPoolReserved: &p.Reserved, netlinksmc.AttrPoolPeak: &p.Peak,
		netlinksmc.AttrPoolRMB: &p.RMB, netlinksmc.AttrPoolSndbuf: &p.SendRings, netlinksmc.AttrPoolDMB: &p.DMB,
		netlinksmc.AttrPoolQueues: &p.Queues, netlinksmc.AttrPoolIdle: &p.Idle,
		netlinksmc.AttrPoolRefused: &p.Refused,
	}
	for ad.Next() {
		if field := fields[ad.Type()]; field != nil {
			*field = ad.Uint64()
		}
	}
	return ad.Err()
}
