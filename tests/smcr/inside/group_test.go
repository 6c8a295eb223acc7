// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

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

	"github.com/smckit/smckit/tests/peer"
)

// Types of LLC messages, as version 2 has them.
const (
	confirmLink    = 0x21
	addLink        = 0x22
	addLinkCont    = 0x23
	deleteLink     = 0x24
	requestAddLink = 0x25
	confirmRkey    = 0x26
	testLink       = 0x27
	deleteRkey     = 0x29
	cdcType        = 0xfe
)

// Flags of LLC messages.
const (
	response = 0x80
	all      = 0x40 // DELETE LINK
	orderly  = 0x20 // DELETE LINK
	negative = 0x20 // of an answer about keys
	plain    = 0x03 // CONFIRM LINK: no eye catchers
)

const (
	msgLength = 44
	mtuCode   = 3 // 1024 bytes, as soft-RoCE has on an Ethernet
	sizeCode  = 2 // 64 KiB
)

// group is a link group, as its peer in user space has it.
type group struct {
	n      *network
	addr   netip.Addr
	server bool   // we are: our module connects
	v1     bool   // it is of version 1
	agrees bool   // to messages as immediate data
	recvs  uint32 // and says that it has two to the power of that many receives, if that is not 0
	host   *peer.Adapter
	qp     *peer.QP
	psn    uint32
	first  *conn // of those that a test needs again

	mu    sync.Mutex
	conns map[uint32]*conn // by their token
	llc   [][]byte         // messages that nobody has taken yet
	mute  bool             // LLC is not answered
	// Of LLC, CONFIRM RKEY is not.
	holdKeys bool
	brief    int            // what has come as immediate data
	lost     int            // so many DELETE RKEY to come are not answered
	slow     bool           // answers to DELETE RKEY are kept
	kept     [][]byte       // those
	forgot   []uint32       // keys that our module has withdrawn
	tests    int            // of the link, that our module has made
	echo     func(m []byte) // changes answers to those; may be nil
	gone     bool           // our module has ended the group
	formed   bool
	made     int  // connections
	keepLink bool // a DELETE LINK for the link is not answered
}

// complies answers a DELETE LINK of the server, which names the only link, so the group ends. The caller holds the lock.
func (g *group) complies() {
	g.gone = true
	_ = g.qp.Send(g.formOf(llcMessage(deleteLink, response, 1)))
}

func newGroup(t testing.TB, n *network, addr netip.Addr, server bool) *group {
	g := &group{n: n, addr: addr, server: server, psn: 0xfffff0, conns: map[uint32]*conn{}}
	g.host = peer.NewAdapter(n.Net, addr)
	g.qp = g.host.NewQP(g.psn)
	g.qp.Message, g.qp.Written = g.heard, g.written
	t.Cleanup(g.host.Close)
	return g
}

// llcMessage is one of version 2, with something in its body.
func llcMessage(kind, flags byte, body ...byte) []byte {
	m := make([]byte, max(msgLength, 4+len(body)))
	m[0], m[3] = kind, flags
	binary.LittleEndian.PutUint16(m[1:], uint16(len(m)))
	copy(m[4:], body)
	return m
}

// Version 1 has other types, and one length. formOf is a message as the group's version has it, meaningOf one of version 1 as
// version 2 has it.
func (g *group) formOf(msg []byte) []byte {
	if !g.v1 || len(msg) != msgLength || msg[0]&0xf0 != 0x20 {
		return msg
	}
	msg = bytes.Clone(msg)
	msg[0], msg[1], msg[2] = msg[0]&0xf, msgLength, 0
	return msg
}

func (g *group) meaningOf(msg []byte) []byte {
	if !g.v1 || len(msg) != msgLength || msg[0]&0xf0 != 0 {
		return msg
	}
	msg = bytes.Clone(msg)
	msg[0] |= 0x20
	return msg
}

// heard takes a message.
func (g *group) heard(msg []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(msg) != msgLength {
		g.llc = append(g.llc, msg)
		return
	}
	if msg[0] == cdcType {
		if c := g.conns[binary.BigEndian.Uint32(msg[4:])]; c != nil {
			c.heard(parseCDC(msg))
		}
		return
	}
	msg = g.meaningOf(msg)
	asks := msg[3]&response == 0
	switch {
	case msg[0] == deleteLink && asks && msg[3]&all != 0:
		g.gone = true
	case msg[0] == deleteLink && asks && !g.server:
		g.llc = append(g.llc, msg)
		if !g.keepLink {
			g.complies()
		}
		return
	case !g.mute && asks && (msg[0] == confirmRkey && !g.holdKeys || msg[0] == testLink || msg[0] == deleteRkey):
		answer := bytes.Clone(msg)
		answer[3] |= response
		if msg[0] == testLink {
			g.tests++
			if g.echo != nil {
				g.echo(answer)
			}
		}
		if msg[0] == deleteRkey {
			g.forgot = append(g.forgot, binary.BigEndian.Uint32(msg[8:]))
			clear(answer[8:]) // as Linux has it
			if g.lost > 0 {
				g.lost--
				return
			}
			if g.slow {
				g.kept = append(g.kept, answer)
				return
			}
		}
		_ = g.qp.Send(g.formOf(answer))
		return
	}
	g.llc = append(g.llc, msg)
}

// written takes immediate data.
func (g *group) written(imm, length uint32) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for token, c := range g.conns {
		if byte(token) == byte(imm>>24) {
			c.theirProd += uint64(length)
			c.theirCons += uint64(imm & immediateRead)
			g.brief++
		}
	}
}

var errGone = errors.New("our module has ended the link group")

// until waits for a condition, which is looked at under the lock.
func (g *group) until(ctx context.Context, what string, holds func() bool) error {
	ticker := time.NewTicker(2 * time.Millisecond)
	defer ticker.Stop()
	for {
		g.mu.Lock()
		yes, gone := holds(), g.gone
		g.mu.Unlock()
		switch {
		case yes:
			return nil
		case gone:
			return fmt.Errorf("%s: %w", what, errGone)
		case g.qp.Refused():
			return fmt.Errorf("%s: %w", what, peer.ErrRefused)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, ctx.Err())
		}
	}
}

// take waits for an LLC message that nobody has taken yet.
func (g *group) take(ctx context.Context, kind, flags byte) (msg []byte, err error) {
	err = g.until(ctx, fmt.Sprintf("LLC message %#x, flags %#x", kind, flags), func() bool {
		for i, m := range g.llc {
			if m[0] == kind && m[3]&response == flags&response {
				msg = m
				g.llc = append(g.llc[:i], g.llc[i+1:]...)
				return true
			}
		}
		return false
	})
	return msg, err
}

// says sends messages, and waits until they have arrived.
func (g *group) says(ctx context.Context, msgs ...[]byte) error {
	for _, m := range msgs {
		if err := g.qp.Send(g.formOf(m)); err != nil {
			return err
		}
	}
	return g.qp.Flush(ctx)
}

// asks sends an LLC message and waits for the answer.
func (g *group) asks(ctx context.Context, msg []byte) ([]byte, error) {
	if err := g.says(ctx, msg); err != nil {
		return nil, err
	}
	return g.take(ctx, msg[0], response)
}

// confirmLinkMessage is a CONFIRM LINK of ours.
func (g *group) confirmLinkMessage(flags, link byte) []byte {
	a := g.addr.As16()
	body := append(append(bytes.Clone(peer.MAC), a[:]...), byte(g.qp.Number>>16), byte(g.qp.Number>>8), byte(g.qp.Number), link, 1, 2, 3, 4, 1, 255)
	return llcMessage(confirmLink, flags|plain, body...)
}

// confirmRkeyMessage tells of an RMB.
func confirmRkeyMessage(r *peer.Region) []byte {
	be := binary.BigEndian
	return llcMessage(confirmRkey, 0, be.AppendUint64(be.AppendUint32([]byte{0}, r.Rkey), r.Addr)...)
}

// linkUp is the end of first contact: CONFIRM LINK, and its answer.
func (g *group) linkUp(ctx context.Context) error {
	if g.server {
		answer, err := g.asks(ctx, g.confirmLinkMessage(0, 1))
		if err == nil && (answer[29] != 1 || answer[3]&plain == 0) {
			err = fmt.Errorf("CONFIRM LINK: %x", answer)
		}
		g.formed = err == nil
		return err
	}
	m, err := g.take(ctx, confirmLink, 0)
	if err != nil {
		return err
	}
	g.formed = true
	if err := g.says(ctx, g.confirmLinkMessage(response, m[29])); err != nil || !g.v1 {
		return err
	}
	return g.noSecond(ctx)
}

// noSecond refuses the offer of a second link, by which a client of an older version is told that there will be none.
func (g *group) noSecond(ctx context.Context) error {
	if _, err := g.take(ctx, addLink, 0); err != nil {
		return err
	}
	return g.says(ctx, llcMessage(addLink, response|all))
}
