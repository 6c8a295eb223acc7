// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"context"
	"iter"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Netlink protocols, from <linux/netlink.h>.
const (
	SockDiag = 4
	generic  = 16
	RDMA     = 20
)

// Conn is a netlink connection. It is safe for concurrent use; requests wait for one another.
type Conn struct {
	conn        *netlink.Conn
	turns       turns
	interrupted func() bool
}

// Dial opens a netlink connection in the network namespace of the calling thread.
func Dial(protocol int) (*Conn, error) {
	s, portID, err := open(protocol)
	if err != nil {
		return nil, err
	}
	return New(netlink.NewConn(s, portID), s.Interrupted), nil
}

// New returns a Conn on conn, which it owns from then on. interrupted reports whether the kernel marked the last answer as
// interrupted where conn does not show it; it may be nil.
func New(conn *netlink.Conn, interrupted func() bool) *Conn {
	return &Conn{conn: conn, turns: newTurns(), interrupted: interrupted}
}

// Close closes the connection. A request that waits for an answer fails.
func (c *Conn) Close() error { return c.conn.Close() }

// Stream sends a request and returns the messages of its answer while the kernel sends them. An error is the last element:
// smcerr.ErrDumpInterrupted comes after all messages. A loop that ends early reads the rest of the answer before it returns.
func (c *Conn) Stream(ctx context.Context, request netlink.Message) iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		more, err := c.stream(ctx, request, yield)
		if more && err != nil {
			yield(netlink.Message{}, err)
		}
	}
}

// stream is Stream without the error as an element. more is false once yield has asked for the end. The connection is free
// again when stream returns.
func (c *Conn) stream(
	ctx context.Context, request netlink.Message, yield func(netlink.Message, error) bool,
) (more bool, err error) {
	done, err := c.turns.take(ctx, c.conn)
	if err != nil {
		return true, err
	}
	defer done()
	sent, err := c.conn.Send(request)
	if err != nil {
		return true, contextError(ctx, err)
	}
	interrupted := false
	for m, err := range c.conn.ReceiveIter() {
		if err == nil {
			err = netlink.Validate(sent, []netlink.Message{m})
		}
		if ctx.Err() != nil || err != nil {
			return true, contextError(ctx, err)
		}
		interrupted = interrupted || m.Header.Flags&netlink.DumpInterrupted != 0
		if !yield(m, nil) {
			return false, nil
		}
	}
	if interrupted || c.interrupted != nil && c.interrupted() {
		return true, smcerr.ErrDumpInterrupted
	}
	return true, nil
}
