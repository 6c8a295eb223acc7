// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/tool/smcrd"
	"github.com/smckit/smckit/tests/guest"
)

// Our module's second adapter. Its address is in the subnet of the first, so that link groups may have a link over it.
const (
	secondDevice = "r1"
	secondRXE    = "rxes"
	secondSubnet = "10.97.0.2/16"
)

// Link is the peer's end of the second link of a group.
type Link struct {
	*QP
	Link byte // its number in the group
}

// keyPair is an RMB of our module on both links. The address on the first link may be unknown.
type keyPair struct{ first, second LinkKey }

// OpenSecondWire gives our module a second adapter, on an Ethernet of its own, until the test ends.
func OpenSecondWire(t testing.TB) *Net {
	t.Helper()
	n := openPort(t, secondDevice, secondRXE, netip.MustParsePrefix(secondSubnet))
	t.Cleanup(func() {
		guest.Run(t, "rdma link delete "+secondRXE)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// secondAddr is the address of the second adapter of a peer.
func secondAddr(addr netip.Addr) netip.Addr {
	a := addr.As4()
	a[2] += 100
	return netip.AddrFrom4(a)
}

// closeAdapters has the adapters of the group fall silent.
func (g *LinkGroup) closeAdapters() {
	g.adapter.Close()
	if g.other != nil {
		g.other.Close()
	}
}

// OnSecond is an RMB of the peer as the second link names it.
func OnSecond(r *Region) *Region {
	return &Region{Addr: r.Addr | 1<<56, Rkey: r.Rkey | 1<<24, Bytes: r.Bytes}
}

// NewSecond makes the peer's end of a second link, in place of the one that it has. The RMBs can be reached over it at once.
func (g *LinkGroup) NewSecond(number byte) *Link {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.other == nil {
		g.other = NewAdapter(g.Wire, g.SecondAddr)
		g.other.next = 0x200 // unlike those of the first adapter, whose address it may have
	}
	g.Second = &Link{QP: g.newQP(g.other, 0xff), Link: number}
	for _, c := range g.conns {
		g.Second.Region(OnSecond(c.RMB))
	}
	return g.Second
}

// AddLinkMessage makes an ADD LINK for the second link: as request or response, and in version 2 with the keys of all RMBs.
func (g *LinkGroup) AddLinkMessage(flags byte) []byte {
	s := g.Second
	body := make([]byte, MsgLength-4)
	copy(body, MAC)
	copy(body[8:], gid(s.host.Addr))
	put24(body[24:], s.Number)
	body[27], body[28] = s.Link, MTUCode
	put24(body[29:], s.FirstPSN())
	if g.V1 {
		return LLC(AddLink, flags, body...)
	}
	pairs := g.pairs()
	body = append(body, make([]byte, 28)...)
	body[40] = 0x80 // direct
	copy(body[42:], gid(s.host.Addr))
	binary.LittleEndian.PutUint16(body[66:], uint16(len(pairs)/16))
	return LLC(AddLink, flags, append(body, pairs...)...)
}

// Pair encodes a key on the link that carries a message, and the key and address on the new link.
func Pair(known, rkey uint32, addr uint64) []byte {
	be := binary.BigEndian
	return be.AppendUint64(be.AppendUint32(be.AppendUint32(nil, known), rkey), addr)
}

// pairs encodes the keys of all RMBs of the peer.
func (g *LinkGroup) pairs() (all []byte) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.conns {
		r := OnSecond(c.RMB)
		all = append(all, Pair(c.RMB.Rkey, r.Rkey, r.Addr)...)
	}
	return all
}

// notePairs takes in keys of our module's RMBs, which Pair has encoded.
func (g *LinkGroup) notePairs(b []byte) {
	be := binary.BigEndian
	g.mu.Lock()
	defer g.mu.Unlock()
	for ; len(b) >= 16; b = b[16:] {
		p := keyPair{LinkKey{Rkey: be.Uint32(b)}, LinkKey{Rkey: be.Uint32(b[4:]), Addr: be.Uint64(b[8:])}}
		for _, c := range g.conns {
			if k := c.keys[g.QP]; k.Rkey == p.first.Rkey {
				p.first = k
			}
		}
		g.keys = append(g.keys, p)
	}
}

// noteKeys takes in the keys in a CONFIRM RKEY of our module. The caller holds the lock.
func (g *LinkGroup) noteKeys(by *QP, msg []byte) {
	if g.Second != nil && msg[4] == 0 && !slices.ContainsFunc(g.llc, func(a arrived) bool { return a.msg[0] == DeleteLink }) {
		g.Keyless++
	}
	if g.Second == nil || msg[4] == 0 {
		return
	}
	be := binary.BigEndian
	p := keyPair{LinkKey{Rkey: be.Uint32(msg[5:]), Addr: be.Uint64(msg[9:])}, LinkKey{Rkey: be.Uint32(msg[18:]), Addr: be.Uint64(msg[22:])}}
	if by == g.Second.QP {
		p.first, p.second = p.second, p.first
	}
	g.keys = append(g.keys, p)
}

// OfferLink is the exchange of ADD LINK, after which the peer's queue pair is connected. change alters the peer's message; nil
// leaves it as it is. Return: our module's message.
func (g *LinkGroup) OfferLink(ctx context.Context, change func(msg []byte) []byte) ([]byte, error) {
	if change == nil {
		change = func(msg []byte) []byte { return msg }
	}
	if g.Server {
		if g.Second == nil {
			g.NewSecond(2)
		}
		answer, err := g.Request(ctx, change(g.AddLinkMessage(0)))
		if err == nil && answer[3]&AllLinks == 0 {
			g.connectSecond(answer)
		}
		return answer, err
	}
	offer, err := g.Take(ctx, AddLink, 0)
	if err != nil {
		return nil, err
	}
	return offer, g.AnswerOffer(ctx, offer, change)
}

// AnswerOffer makes the peer's end of the link that an ADD LINK of our module describes, and answers. change alters the answer.
func (g *LinkGroup) AnswerOffer(ctx context.Context, offer []byte, change func(msg []byte) []byte) error {
	g.NewSecond(offer[31])
	g.connectSecond(offer)
	return g.Send(ctx, change(g.AddLinkMessage(Response)))
}

// connectSecond connects the second link to our module's end, which an ADD LINK has described.
func (g *LinkGroup) connectSecond(msg []byte) {
	g.Second.Connect(netip.AddrFrom16([16]byte(msg[12:])).Unmap(), get24(msg[28:]), get24(msg[33:]), msg[32]&15)
	if len(msg) > 72 {
		g.notePairs(msg[72:])
	}
}

// Continuation makes an ADD LINK CONTINUATION that has up to two of these pairs.
func Continuation(flags, link byte, pairs []byte) []byte {
	return LLC(AddLinkCont, flags, append([]byte{link, byte(len(pairs) / 16), 0, 0}, pairs[:min(len(pairs), 32)]...)...)
}

// ExchangeKeys is the exchange of ADD LINK CONTINUATION, which version 1 has.
func (g *LinkGroup) ExchangeKeys(ctx context.Context) error {
	if !g.V1 {
		return nil
	}
	flags := byte(Response)
	if g.Server {
		flags = 0
	}
	pairs := g.pairs()
	for {
		msg := Continuation(flags, g.Second.Link, pairs)
		if g.Server {
			if err := g.Send(ctx, msg); err != nil {
				return err
			}
		}
		theirs, err := g.Take(ctx, AddLinkCont, flags^Response)
		if err != nil {
			return err
		}
		g.notePairs(theirs[8 : 8+16*min(theirs[5], 2)])
		if !g.Server {
			if err := g.Send(ctx, msg); err != nil {
				return err
			}
		}
		if theirs[5] <= 2 && len(pairs) <= 32 {
			return nil
		}
		pairs = pairs[min(len(pairs), 32):]
	}
}

// ConfirmSecond is the exchange of CONFIRM LINK by the second link, after which connections may use it.
func (g *LinkGroup) ConfirmSecond(ctx context.Context) error {
	s := g.Second
	if g.Server {
		answer, err := g.RequestBy(ctx, s.QP, ConfirmLinkOf(s.QP, 0, s.Link))
		if err == nil && answer[29] != s.Link {
			err = fmt.Errorf("CONFIRM LINK of link %d is answered by %x", s.Link, answer)
		}
		return err
	}
	if _, err := g.TakeBy(ctx, s.QP, ConfirmLink, 0); err != nil {
		return err
	}
	if err := g.SendBy(ctx, s.QP, ConfirmLinkOf(s.QP, Response, s.Link)); err != nil {
		return err
	}
	return g.AwaitLinks(ctx, 2)
}

// AddSecondLink gives the group a second link.
func (g *LinkGroup) AddSecondLink(ctx context.Context) error {
	offer := func(ctx context.Context) error {
		answer, err := g.OfferLink(ctx, nil)
		if err == nil && answer[3]&AllLinks != 0 {
			err = fmt.Errorf("the second link is refused: %x", answer)
		}
		return err
	}
	return InTurn(ctx, offer, g.ExchangeKeys, g.ConfirmSecond)
}

// links lists the links of the group in our module, and the group's ID there.
func (g *LinkGroup) links(ctx context.Context) (id string, links []smcrd.Link, err error) {
	var answer smcrd.LinkGroupsR
	out, err := exec.CommandContext(ctx, "smcr", "linkgroup", "link-show", "--json").Output()
	if err == nil {
		err = jsondoc.Decode(out, &answer)
	}
	if err != nil {
		return "", nil, fmt.Errorf("smcr: %w", err)
	}
	for _, group := range answer.LinkGroups {
		for _, l := range group.Links {
			addr, err := netip.ParseAddr(l.PeerGID)
			if err == nil && (addr.Unmap() == g.Addr || addr.Unmap() == g.SecondAddr) {
				id, links = group.ID, append(links, l)
			}
		}
	}
	return id, links, nil
}

// ID is the number that our module has given the group.
func (g *LinkGroup) ID(ctx context.Context) (string, error) {
	id, _, err := g.links(ctx)
	return id, err
}

// AwaitLinks waits until our module lists a number of links, all of them active. A server sends nothing when it has received the response
// to CONFIRM LINK, and a link has its place for a moment after it has been deleted.
func (g *LinkGroup) AwaitLinks(ctx context.Context, want int) error {
	for {
		_, links, err := g.links(ctx)
		if err != nil {
			return err
		}
		active := 0
		for _, l := range links {
			if l.State == "LINK_ACTIVE" {
				active++
			}
		}
		if len(links) == want && active == want {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("%d links, %d of them active, instead of %d: %w", len(links), active, want, ctx.Err())
		}
	}
}

// RequestBy does what Request does, by a link: the response comes by the same one.
func (g *LinkGroup) RequestBy(ctx context.Context, by *QP, msg []byte) ([]byte, error) {
	if err := g.SendBy(ctx, by, msg); err != nil {
		return nil, err
	}
	return g.TakeBy(ctx, by, msg[0], Response)
}

// answerBy is the link by which the peer answers what has come by a link. The caller holds the lock.
func (g *LinkGroup) answerBy(q *QP) *QP {
	if g.CrossAnswers && g.Second != nil {
		return g.Other(q)
	}
	return q
}

// refusesLink refuses an ADD LINK if the peer wants no second link. The caller holds the lock.
func (g *LinkGroup) refusesLink(by *QP, msg []byte) bool {
	if !g.RefuseLinks || len(msg) < MsgLength {
		return false
	}
	kind := byte(AddLink)
	if g.V1 {
		kind &= 0xf
	}
	if msg[0] != kind || msg[3]&Response != 0 {
		return false
	}
	_ = by.Send(g.encodeLLC(LLC(AddLink, Response|AllLinks, msg[4:MsgLength]...)))
	return true
}

// confirmRkey makes the CONFIRM RKEY of the peer, by the first link, for an RMB on all links.
func (g *LinkGroup) confirmRkey(r *Region) []byte {
	if g.Second == nil {
		return ConfirmRkeyOf(r)
	}
	s := OnSecond(r)
	return ConfirmRkeyOf(r, LinkKey{g.Second.Link, s.Rkey, s.Addr})
}

// UseSecond has a connection that is being made use the second link, so that ACCEPT or CONFIRM names it.
func (c *Conn) UseSecond() {
	s, r := c.Group.Second, OnSecond(c.RMB)
	c.QP = s.QP
	c.Local.Addr, c.Local.QPN, c.Local.Rkey, c.Local.RMB = s.host.Addr, s.Number, r.Rkey, r.Addr
}

// followLink has a connection use the link that our module's ACCEPT or CONFIRM names. Return: our module's address on it.
func (c *Conn) followLink() netip.Addr {
	if s := c.Group.Second; s != nil {
		if addr, number := s.To(); addr == c.Remote.Addr && number == c.Remote.QPN {
			c.UseSecond()
		}
	}
	addr, _ := c.QP.To()
	return addr
}
