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

// LinkGroup is the peer's side of a link group with our module, with one link unless Wire is set. Unless a field says otherwise, it
// answers what our module sends as a well-behaved peer does. Fields that are set while our module may send are protected by Locked.
type LinkGroup struct {
	Net    *RoCENet
	Addr   netip.Addr
	Server bool  // the peer is the server: our module connects
	V1     bool  // of version 1
	QP     *QP   // of the first link; of the only one once the other has been deleted
	Link   byte  // the number of that link
	First  *Conn // set by tests that use the first connection again
	Formed bool  // first contact is over

	Wire       *Net       // if not nil, the peer agrees to a second link, which it has an adapter for in this network
	SecondAddr netip.Addr // of that adapter
	Second     *Link      // the second link, from NewSecond to Drop

	Immediate bool   // the peer agrees to messages as immediate data
	Receives  uint32 // if not 0, it states 2 to the power of Receives receives

	Mute            bool           // it does not answer LLC
	HoldConfirmRkey bool           // it does not answer CONFIRM RKEY
	KeepDeleteLink  bool           // it does not answer a DELETE LINK for the link
	RefuseLinks     bool           // it refuses ADD LINK
	CrossAnswers    bool           // it answers each request by the other of its two links
	LoseDeleteRkey  int            // it does not answer this many more DELETE RKEY
	KeepDeleteRkey  bool           // it appends its answers to DELETE RKEY to Kept instead of sending them
	ChangeTestLink  func(m []byte) // if not nil, changes its answers to TEST LINK

	// Data from our module.
	Kept           [][]byte
	DeletedRkeys   []uint32
	LinkTests      int
	Keyless        int    // CONFIRM RKEY without a key on one of two links, before DELETE LINK for it
	Deletion       []byte // the last DELETE LINK for one of two links that LoseLink has taken
	ImmediateCount int    // messages as immediate data
	Gone           bool
	GoneAt         time.Time

	adapter *Adapter
	other   *Adapter // of the second link, or nil
	psn     uint32
	made    int // connections
	mu      sync.Mutex
	conns   map[uint32]*Conn // by token
	llc     []arrived        // messages for Take
	keys    []keyPair        // of our module's RMBs
}

// arrived is a message of LLC, and the end of the link that it has come by.
type arrived struct {
	by  *QP
	msg []byte
}

// AnswerDeleteLink answers DELETE LINK of the server for the only link, which ends the group. The caller holds the lock.
func (g *LinkGroup) AnswerDeleteLink() {
	g.end()
	_ = g.QP.Send(g.encodeLLC(LLC(DeleteLink, Response, g.Link)))
}

// end notes that our module has ended the group. The caller holds the lock.
func (g *LinkGroup) end() { g.Gone, g.GoneAt = true, time.Now() }

// NewLinkGroup makes the peer's side of a link group. The peer has the address, and an RDMA adapter of its own.
func NewLinkGroup(t testing.TB, n *RoCENet, addr netip.Addr, server bool) *LinkGroup {
	g := NewLinkGroupOn(n, NewAdapter(n.Net, addr), addr, server)
	t.Cleanup(g.closeAdapters)
	return g
}

// NewLinkGroupOn does the same for a peer that shares its adapter with other peers. The caller closes that.
func NewLinkGroupOn(n *RoCENet, a *Adapter, addr netip.Addr, server bool) *LinkGroup {
	g := &LinkGroup{
		Net: n, Addr: addr, Server: server, Link: 1, SecondAddr: secondAddr(addr), psn: 0xfffff0, conns: map[uint32]*Conn{}, adapter: a,
	}
	g.QP = g.newQP(a, g.psn)
	return g
}

// newQP makes a queue pair whose messages the group handles.
func (g *LinkGroup) newQP(a *Adapter, psn uint32) *QP {
	q := a.NewQP(psn)
	q.Message, q.Written = func(msg []byte) { g.received(q, msg) }, g.receivedImmediate
	return q
}

// received handles a message that our module has sent by a link.
func (g *LinkGroup) received(by *QP, msg []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusesLink(by, msg) {
		return
	}
	if len(msg) != MsgLength {
		g.llc = append(g.llc, arrived{by, msg})
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
	if msg[0] == ConfirmRkey && asks {
		g.noteKeys(by, msg)
	}
	switch {
	case msg[0] == DeleteLink && asks && msg[3]&AllLinks != 0:
		g.end()
	case msg[0] == DeleteLink && asks && !g.Server && g.Second == nil && msg[4] == g.Link:
		g.llc = append(g.llc, arrived{by, msg})
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
		_ = g.answerBy(by).Send(g.encodeLLC(answer))
		return
	}
	g.llc = append(g.llc, arrived{by, msg})
}

// receivedImmediate handles a message that our module has sent as immediate data.
func (g *LinkGroup) receivedImmediate(imm, length uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for token, c := range g.conns {
		if byte(token) == byte(imm>>24) {
			c.remoteSeq++
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
	return g.TakeBy(ctx, nil, kind, flags)
}

// TakeBy does what Take does, for messages that have come by a link, or for nil by any.
func (g *LinkGroup) TakeBy(ctx context.Context, by *QP, kind, flags byte) (msg []byte, err error) {
	err = g.Until(ctx, fmt.Sprintf("LLC message %#x, flags %#x", kind, flags), func() bool {
		for i, a := range g.llc {
			m := a.msg
			if m[0] == kind && m[3]&Response == flags&Response && (by == nil || by == a.by) {
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
	return g.SendBy(ctx, g.QP, msgs...)
}

// SendBy does what Send does, by a link.
func (g *LinkGroup) SendBy(ctx context.Context, by *QP, msgs ...[]byte) error {
	if err := g.Post(by, msgs...); err != nil {
		return err
	}
	return by.Flush(ctx)
}

// Post sends messages by a link, and does not wait for their acknowledgements.
func (g *LinkGroup) Post(by *QP, msgs ...[]byte) error {
	for _, m := range msgs {
		if err := by.Send(g.encodeLLC(m)); err != nil {
			return err
		}
	}
	return nil
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
	if g.Wire != nil {
		return nil
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
