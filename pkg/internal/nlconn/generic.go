// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"context"
	"errors"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
)

// DumpTries is how often Dump reads a list that changes while it is read.
const DumpTries = 3

// From <linux/genetlink.h>: the family that looks families up, its command and its attributes.
const (
	controllerID      = 0x10
	controllerVersion = 2
	getFamily         = 3
	familyAttrID      = 1
	familyAttrName    = 2
)

// Family is a family of generic netlink on a connection.
type Family struct {
	// ID is the number that the running kernel gave the family.
	ID uint16
	// Version is that of the requests.
	Version uint8
}

// Generic is a connection of generic netlink. It is safe for concurrent use; requests wait for one another.
type Generic struct {
	conn        *genetlink.Conn
	turns       turns
	interrupted func() bool
}

// DialGeneric opens a generic netlink connection in the network namespace of the calling thread.
func DialGeneric() (*Generic, error) {
	s, portID, err := open(generic)
	if err != nil {
		return nil, err
	}
	return NewGeneric(genetlink.NewConn(netlink.NewConn(s, portID)), s.Interrupted), nil
}

// NewGeneric returns a Generic on conn, as New does for a netlink connection.
func NewGeneric(conn *genetlink.Conn, interrupted func() bool) *Generic {
	return &Generic{conn: conn, turns: newTurns(), interrupted: interrupted}
}

// Close closes the connection. A request that waits for an answer fails.
func (g *Generic) Close() error { return g.conn.Close() }

// SetWriteBuffer sets how many bytes the connection may send at once; a request is one message. The system limits it for callers
// without CAP_NET_ADMIN.
func (g *Generic) SetWriteBuffer(bytes int) error { return g.conn.SetWriteBuffer(bytes) }

// LookUp returns the number of a family. The function of the genetlink library panics on answers that it does not expect.
func (g *Generic) LookUp(ctx context.Context, name string) (id uint16, err error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(familyAttrName, name)
	data, err := ae.Encode()
	if err != nil {
		return 0, err
	}
	replies, _, err := g.execute(ctx, Family{controllerID, controllerVersion}, getFamily, netlink.Request, data)
	if err != nil {
		return 0, err
	}
	return parseFamilyID(replies)
}

// parseFamilyID decodes the answer to LookUp.
func parseFamilyID(replies []genetlink.Message) (id uint16, err error) {
	for _, m := range replies {
		ad, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return 0, err
		}
		for ad.Next() {
			if ad.Type() == familyAttrID {
				id = ad.Uint16()
			}
		}
		if err := ad.Err(); err != nil {
			return 0, err
		}
	}
	if id == 0 {
		return 0, errors.New("answer without the number of the family")
	}
	return id, nil
}

// Dump requests a list. If the list changed during each of DumpTries tries, Dump returns the last answer and
// smcerr.ErrDumpInterrupted.
func (g *Generic) Dump(ctx context.Context, f Family, command uint8) ([]genetlink.Message, error) {
	var replies []genetlink.Message
	for range DumpTries {
		var interrupted bool
		var err error
		replies, interrupted, err = g.execute(ctx, f, command, netlink.Request|netlink.Dump, nil)
		if err != nil {
			return nil, err
		}
		if !interrupted {
			return replies, nil
		}
	}
	return replies, smcerr.ErrDumpInterrupted
}

// Set requests a change. data are the attributes of the request.
func (g *Generic) Set(ctx context.Context, f Family, command uint8, data []byte) error {
	_, _, err := g.execute(ctx, f, command, netlink.Request|netlink.Acknowledge, data)
	return err
}

// execute sends one request and returns its replies, and whether the kernel marked them as interrupted.
func (g *Generic) execute(
	ctx context.Context, f Family, command uint8, flags netlink.HeaderFlags, data []byte,
) (replies []genetlink.Message, interrupted bool, err error) {
	done, err := g.turns.take(ctx, g.conn)
	if err != nil {
		return nil, false, err
	}
	defer done()
	request := genetlink.Message{Header: genetlink.Header{Command: command, Version: f.Version}, Data: data}
	sent, err := g.conn.Send(request, f.ID, flags)
	if err != nil {
		return nil, false, contextError(ctx, err)
	}
	replies, messages, err := g.conn.Receive()
	if err != nil {
		return nil, false, contextError(ctx, err)
	}
	if err := netlink.Validate(sent, messages); err != nil {
		return nil, false, err
	}
	interrupted = g.interrupted != nil && g.interrupted()
	for _, m := range messages {
		interrupted = interrupted || m.Header.Flags&netlink.DumpInterrupted != 0
	}
	return replies, interrupted, nil
}
