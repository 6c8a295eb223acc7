// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"
)

// LinkGroup is the peer's side of a link group with our module, with one link. Unless a field says otherwise, it answers what our
// module sends as a well-behaved peer does. Fields that are set while our module may send are protected by Locked.
type LinkGroup struct {
	Net    *RoCENet
	Addr   netip.Addr
	Server bool // the peer is the server: our module connects
	V1     bool // of version 1
	QP     *QP
	First  *Conn // set by tests that use the first connection again
	Formed bool  // first contact is over

	Immediate bool   // the peer agrees to messages as immediate data
	Receives  uint32 // if not 0, it states 2 to the power of Receives receives

	Mute            bool           // it does not answer LLC
	HoldConfirmRkey bool           // it does not answer CONFIRM RKEY
	KeepDeleteLink  bool           // it does not answer a DELETE LINK for the link
	LoseDeleteRkey  int            // it does not answer this many more DELETE RKEY
	KeepDeleteRkey  bool           // it appends its answers to DELETE RKEY to Kept instead of sending them
	ChangeTestLink  func(m []byte) // if not nil, changes its answers to TEST LINK

	// Data from our module.
	Kept           [][]byte
	DeletedRkeys   []uint32
	LinkTests      int
	ImmediateCount int // messages as immediate data
	Gone           bool

	adapter *Adapter
	psn     uint32
	made    int // connections
	mu      sync.Mutex
	conns   map[uint32]*Conn // by token
	llc     [][]byte         // messages for Take
}

// AnswerDeleteLink answers DELETE LINK of the server for the only link, which ends the group. The caller holds the lock.
func (g *LinkGroup) AnswerDeleteLink() {
	g.Gone = true
	_ = g.QP.Send(g.encodeLLC(LLC(DeleteLink, Response, 1)))
}

// NewLinkGroup makes the peer's side of a link group. The peer has the address, and an RDMA adapter of its own.
func NewLinkGroup(t testing.TB, n *RoCENet, addr netip.Addr, server bool) *LinkGroup {
	g := &LinkGroup{Net: n, Addr: addr, Server: server, psn: 0xfffff0, conns: map[uint32]*Conn{}}
	g.adapter = NewAdapter(n.Net, addr)
	g.QP = g.adapter.NewQP(g.psn)
	g.QP.Message, g.QP.Written = g.received, g.receivedImmediate
	t.Cleanup(g.adapter.Close)
	return g
}

// received handles a message of our module.
func (g *LinkGroup) received(msg []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(msg) != MsgLength {
		g.llc = append(g.llc, msg)
		return
	}
	if msg[0] == CDCType {
		if c := g.conns[binary.BigEndian.Uint32(msg[4:])]; c != nil {
			c.received(parseCDC(msg))
		}
		return
	}
	msg = g.decodeLLC(msg)
	asks := msg[3]&Response == 0
	switch {
	case msg[0] == DeleteLink && asks && msg[3]&AllLinks != 0:
		g.Gone = true
	case msg[0] == DeleteLink && asks && !g.Server:
		g.llc = append(g.llc, msg)
		if !g.KeepDeleteLink {
			g.AnswerDeleteLink()
		}
		return
	case !g.Mute && asks && (msg[0] == ConfirmRkey && !g.HoldConfirmRkey || msg[0] == TestLink || msg[0] == DeleteRkey):
		answer := bytes.Clone(msg)
		answer[3] |= Response
		if msg[0] == TestLink {
			g.LinkTests++
			if g.ChangeTestLink != nil {
				g.ChangeTestLink(answer)
			}
		}
		if msg[0] == DeleteRkey {
			g.DeletedRkeys = append(g.DeletedRkeys, binary.BigEndian.Uint32(msg[8:]))
			clear(answer[8:]) // as Linux has it
			if g.LoseDeleteRkey > 0 {
				g.LoseDeleteRkey--
				return
			}
			if g.KeepDeleteRkey {
				g.Kept = append(g.Kept, answer)
				return
			}
		}
		_ = g.QP.Send(g.encodeLLC(answer))
		return
	}
	g.llc = append(g.llc, msg)
}

// receivedImmediate handles a message that our module has sent as immediate data.
func (g *LinkGroup) receivedImmediate(imm, length uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for token, c := range g.conns {
		if byte(token) == byte(imm>>24) {
			c.RemoteProd += uint64(length)
			c.remoteCons += uint64(imm & ImmediateRead)
			g.ImmediateCount++
		}
	}
}

// ErrGone is the error of waiting for something in a link group that our module has ended.
var ErrGone = errors.New("our module has ended the link group")

// Until waits for a condition, which is evaluated under the lock.
func (g *LinkGroup) Until(ctx context.Context, what string, holds func() bool) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		g.mu.Lock()
		yes, gone := holds(), g.Gone
		g.mu.Unlock()
		switch {
		case yes:
			return nil
		case gone:
			return fmt.Errorf("%s: %w", what, ErrGone)
		case g.QP.Refused():
			return fmt.Errorf("%s: %w", what, ErrRefused)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// Take waits for an LLC message that LinkGroup has not handled itself, and removes it from those that wait to be taken. Of the flags,
// only Response counts.
func (g *LinkGroup) Take(ctx context.Context, kind, flags byte) (msg []byte, err error) {
	err = g.Until(ctx, fmt.Sprintf("LLC message %#x, flags %#x", kind, flags), func() bool {
		for i, m := range g.llc {
			if m[0] == kind && m[3]&Response == flags&Response {
				msg = m
				g.llc = append(g.llc[:i], g.llc[i+1:]...)
				return true
			}
		}
		return false
	})
	return msg, err
}

// Send sends LLC or CDC messages, and waits for their acknowledgements.
func (g *LinkGroup) Send(ctx context.Context, msgs ...[]byte) error {
	for _, m := range msgs {
		if err := g.QP.Send(g.encodeLLC(m)); err != nil {
			return err
		}
	}
	return g.QP.Flush(ctx)
}

// Request sends an LLC message and waits for its response.
func (g *LinkGroup) Request(ctx context.Context, msg []byte) ([]byte, error) {
	if err := g.Send(ctx, msg); err != nil {
		return nil, err
	}
	return g.Take(ctx, msg[0], Response)
}

// confirmLink ends first contact: CONFIRM LINK and its response.
func (g *LinkGroup) confirmLink(ctx context.Context) error {
	if g.Server {
		answer, err := g.Request(ctx, g.ConfirmLink(0, 1))
		if err == nil && (answer[29] != 1 || answer[3]&NoEyecatchers == 0) {
			err = fmt.Errorf("CONFIRM LINK: %x", answer)
		}
		g.Formed = err == nil
		return err
	}
	m, err := g.Take(ctx, ConfirmLink, 0)
	if err != nil {
		return err
	}
	g.Formed = true
	if err := g.Send(ctx, g.ConfirmLink(Response, m[29])); err != nil || !g.V1 {
		return err
	}
	return g.RefuseSecondLink(ctx)
}

// RefuseSecondLink waits for ADD LINK and refuses it. Our server sends it to clients of versions 1 and 2.0, which wait for it.
func (g *LinkGroup) RefuseSecondLink(ctx context.Context) error {
	if _, err := g.Take(ctx, AddLink, 0); err != nil {
		return err
	}
	return g.Send(ctx, LLC(AddLink, Response|AllLinks))
}

// UseNewConn opens another connection of the group, exchanges data over it, and closes it.
func (g *LinkGroup) UseNewConn(ctx context.Context) error {
	c, err := g.Open(ctx)
	if err != nil {
		return fmt.Errorf("another connection: %w", err)
	}
	if err := c.Exchange(ctx, 500); err != nil {
		return fmt.Errorf("another connection: %w", err)
	}
	return c.Close(ctx)
}

// Locked calls a function under the lock.
func (g *LinkGroup) Locked(do func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	do()
}

// Add registers a connection in the group by its token, which may have changed since NewConn.
func (g *LinkGroup) Add(c *Conn) { g.Locked(func() { g.conns[c.Local.Token] = c }) }

// Remove removes a connection from the group.
func (g *LinkGroup) Remove(c *Conn) { g.Locked(func() { delete(g.conns, c.Local.Token) }) }
