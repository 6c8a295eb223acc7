// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Other is the other one of two links.
func (g *LinkGroup) Other(q *QP) *QP {
	if q == g.QP {
		return g.Second.QP
	}
	return g.QP
}

// NumberOf is the number of a link.
func (g *LinkGroup) NumberOf(q *QP) byte {
	if g.Second != nil && q == g.Second.QP {
		return g.Second.Link
	}
	return g.Link
}

// Switch has the connection write by a link from now on. It does not send failover validation.
func (c *Conn) Switch(q *QP) error {
	g := c.Group
	g.mu.Lock()
	defer g.mu.Unlock()
	k, known := c.keys[q]
	if !known && g.Second == nil {
		return errors.New("there is no second link")
	}
	for i := len(g.keys) - 1; i >= 0 && !known; i-- {
		from, to := g.keys[i].first, g.keys[i].second
		if q == g.QP {
			from, to = to, from
		}
		if from.Rkey == c.keys[g.Other(q)].Rkey && to.Addr != 0 {
			k, known = to, true
		}
	}
	if !known {
		return errors.New("our module has not sent the key of its RMB on that link")
	}
	c.keys[q] = k
	c.QP, c.Remote.Rkey, c.Remote.RMB = q, k.Rkey, k.Addr
	return nil
}

// Validation is the message by which a connection begins to use another link.
func (c *Conn) Validation() CDC { return CDC{Seq: c.Seq, Token: c.Remote.Token, Flags: Failover} }

// MoveTo has the connection use a link from now on.
func (c *Conn) MoveTo(ctx context.Context, q *QP) error {
	if err := c.Switch(q); err != nil {
		return err
	}
	return c.Group.SendBy(ctx, q, c.Validation().Marshal())
}

// moveAll has all connections that are open use a link.
func (g *LinkGroup) moveAll(ctx context.Context, q *QP) error {
	var all []*Conn
	g.Locked(func() {
		for _, c := range g.conns {
			if c.QP != q && c.Remote != nil && c.RemoteState == 0 {
				all = append(all, c)
			}
		}
	})
	for _, c := range all {
		if err := c.MoveTo(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

// DeletedFor checks with which reason our module has deleted the link of LoseLink, and whether as one that worked until then.
func (g *LinkGroup) DeletedFor(reason uint32, orderly bool) error {
	var m []byte
	g.Locked(func() { m = g.Deletion })
	if m == nil || binary.BigEndian.Uint32(m[5:]) != reason || m[3]&Orderly != 0 != orderly {
		return fmt.Errorf("not DELETE LINK for the reason %#08x, orderly %v: %x", reason, orderly, m)
	}
	return nil
}

// Drop has the group go on with one link: the other is gone.
func (g *LinkGroup) Drop(gone *QP) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if gone == g.QP {
		g.QP, g.Link = g.Second.QP, g.Second.Link
	}
	g.Second = nil
}

// DeleteMessage makes the DELETE LINK of the peer for a link.
func (g *LinkGroup) DeleteMessage(flags byte, q *QP) []byte {
	return LLC(DeleteLink, flags, g.NumberOf(q), 0, 1, 0, 0)
}

// DeleteLink moves the connections of a link to the other one, and deletes the link by the other one.
func (g *LinkGroup) DeleteLink(ctx context.Context, q *QP) error {
	by := g.Other(q)
	if err := g.moveAll(ctx, by); err != nil {
		return err
	}
	if !g.Server {
		if err := g.SendBy(ctx, by, g.DeleteMessage(0, q)); err != nil {
			return err
		}
		return g.LoseLink(ctx, q)
	}
	answer, err := g.RequestBy(ctx, by, g.DeleteMessage(0, q))
	if err == nil && (answer[4] != g.NumberOf(q) || binary.BigEndian.Uint32(answer[5:]) != 0) {
		err = fmt.Errorf("DELETE LINK is answered by %x", answer)
	}
	g.Drop(q)
	return err
}

// LoseLink waits for our module to delete a link by the other one, and has the connections use that.
func (g *LinkGroup) LoseLink(ctx context.Context, q *QP) error {
	by, number := g.Other(q), g.NumberOf(q)
	m, err := g.TakeBy(ctx, by, DeleteLink, 0)
	if err == nil && (m[3]&AllLinks != 0 || m[4] != number) {
		err = fmt.Errorf("not DELETE LINK of link %d: %x", number, m)
	}
	g.Locked(func() { g.Deletion = m })
	if err == nil && g.Server {
		// Only the server deletes links: it sends the same, and the client answers.
		_, err = g.RequestBy(ctx, by, g.DeleteMessage(0, q))
	} else if err == nil {
		err = g.SendBy(ctx, by, LLC(DeleteLink, Response, number))
	}
	if err == nil {
		err = g.moveAll(ctx, by)
	}
	g.Drop(q)
	return err
}
