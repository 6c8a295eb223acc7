// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/smckit/smckit/tests/peer"
)

// Flags of CDC messages: of the producer, and about closing.
const (
	flagBlocked  = 0x80
	flagPending  = 0x40
	flagUrgent   = 0x20
	flagUpdate   = 0x10
	flagFailover = 0x08
	stateDone    = 0x80
	stateClosed  = 0x40
	stateAbort   = 0x20
)

type cursor struct {
	wrap  uint16
	count uint32
}

// at is the cursor of a position in a stream.
func at(pos uint64, size int) cursor {
	return cursor{uint16(pos / uint64(size)), uint32(pos % uint64(size))}
}

func (c cursor) pos(size int) uint64 { return uint64(c.wrap)*uint64(size) + uint64(c.count) }

type cdc struct {
	seq          uint16
	token        uint32
	prod, cons   cursor
	flags, state byte
}

func (m cdc) marshal() []byte {
	be := binary.BigEndian
	b := make([]byte, msgLength)
	b[0], b[1] = cdcType, msgLength
	be.PutUint16(b[2:], m.seq)
	be.PutUint32(b[4:], m.token)
	be.PutUint16(b[10:], m.prod.wrap)
	be.PutUint32(b[12:], m.prod.count)
	be.PutUint16(b[18:], m.cons.wrap)
	be.PutUint32(b[20:], m.cons.count)
	b[24], b[25] = m.flags, m.state
	return b
}

func parseCDC(b []byte) cdc {
	be := binary.BigEndian
	return cdc{
		be.Uint16(b[2:]), be.Uint32(b[4:]),
		cursor{be.Uint16(b[10:]), be.Uint32(b[12:])},
		cursor{be.Uint16(b[18:]), be.Uint32(b[20:])},
		b[24], b[25],
	}
}

// conn is a connection, as its peer in user space has it. What it has heard is under the group's lock.
type conn struct {
	g    *group
	tcp  *peer.TCP
	app  *app // at our module's end
	told <-chan error
	stop chan struct{}
	over chan struct{} // nobody serves TCP any more
	rmb  *peer.Region
	us   peer.EndR
	them *peer.EndR
	size int // of their RMB

	seq        uint16
	prod, cons uint64
	toldCons   uint64 // of cons, what they know
	state      byte

	theirProd, theirCons uint64
	theirState           byte
	messages             int                  // that have come
	use                  func(a *app, fd int) // what the application does that our module connects for; nil for echo
	// They change our CLC messages before they are sent: ACCEPT or CONFIRM, and PROPOSAL.
	corrupt, corruptProposal func(msg []byte) []byte
}

// conn makes a connection that is yet to be.
func (g *group) conn() *conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	n := uint32(g.made)
	c := &conn{g: g, stop: make(chan struct{}), over: make(chan struct{})}
	c.rmb = &peer.Region{Addr: uint64(n) << 32, Rkey: 0x1000 + n, Bytes: make([]byte, 16384<<sizeCode)}
	c.us = peer.EndR{
		V1: g.v1, First: !g.formed, Addr: g.addr, QPN: g.qp.Number, PSN: g.psn, Rkey: c.rmb.Rkey, RMB: c.rmb.Addr,
		Size: sizeCode, MTU: mtuCode, Token: 0xabc000 + n, MaxConns: 255, MaxLinks: 1,
	}
	if g.agrees {
		c.us.Vendor = vendorImmediate | g.recvs<<4
		c.corruptProposal = with(52, 0x02, 'S', 'K', 0x01)
	}
	g.qp.Region(c.rmb)
	g.conns[c.us.Token] = c
	port := uint16(20000)
	if g.server {
		port = 6000
	}
	c.tcp = g.n.NewTCP(netip.AddrPortFrom(g.addr, port+uint16(n)))
	return c
}

// propose begins a connection to our module.
func (c *conn) propose(ctx context.Context) error {
	if err := c.tcp.Connect(ctx, service, append(bytes.Clone(peer.MSS), peer.Option...)); err != nil {
		return err
	}
	if !peer.Magic(c.tcp.Answer.Options) {
		return fmt.Errorf("no option in the answer: %s", c.tcp.Answer)
	}
	msg := peer.ProposalOf(c.g.addr)
	if c.g.v1 {
		msg = peer.ProposalOfV1(c.g.addr, netip.MustParsePrefix(subnet))
	}
	if c.corruptProposal != nil {
		msg = c.corruptProposal(msg)
	}
	return c.tcp.Write(ctx, msg)
}

// Messages as immediate data, which two of our modules agree to: the low byte of a token, whether there is more than space
// for it, and how much has been read since that was told last.
const (
	vendorImmediate  = 0x02534b01
	immediateBlocked = 1 << 23
	immediateRead    = immediateBlocked - 1
)

// brief writes data, which fits before the end of the ring, and tells of it and of what has been read by immediate data.
func (c *conn) brief(ctx context.Context, data []byte) error {
	err := c.g.qp.WriteImm(c.them.RMB+c.prod%uint64(c.size), c.them.Rkey, data, c.them.Token<<24|uint32(c.cons-c.toldCons))
	c.prod += uint64(len(data))
	c.toldCons = c.cons
	c.seq++
	if err == nil {
		err = c.g.qp.Flush(ctx)
	}
	return err
}

// proposed waits for a connection of our module's, which an application is told to make.
func (c *conn) proposed(ctx context.Context) error {
	c.app, c.told = connect(c.tcp.Self, c.use)
	if err := c.tcp.Accept(ctx, append(bytes.Clone(peer.MSS), peer.Option...)); err != nil {
		return err
	}
	want := byte(0x22) // SMC-Rv2 alone
	if c.g.v1 {
		want = 0x20 // both
	}
	m, err := c.tcp.Message(ctx, peer.Proposal)
	if err == nil && m[7] != want {
		err = fmt.Errorf("not a PROPOSAL of these versions, %#x: %x", want, m)
	}
	return err
}

// learn waits for the ACCEPT, or CONFIRM, of our module.
func (c *conn) learn(ctx context.Context, kind byte) error {
	m, err := c.tcp.Message(ctx, kind)
	if err != nil {
		return err
	}
	c.them, err = peer.ParseR(m)
	if err != nil {
		return err
	}
	if c.them.V1 != c.us.V1 || c.them.First != c.us.First || c.them.Addr != service.Addr() || c.them.MTU != mtuCode {
		return fmt.Errorf("our module says %+v", c.them)
	}
	c.size = 16384 << c.them.Size
	if c.us.First {
		c.g.qp.Connect(c.them.Addr, c.them.QPN, c.them.PSN, c.them.MTU)
	}
	return nil
}

// announce tells our module of the RMB of a connection that is not the first.
func (c *conn) announce(ctx context.Context) error {
	if c.us.First {
		return nil
	}
	answer, err := c.g.asks(ctx, confirmRkeyMessage(c.rmb))
	if err == nil && answer[3]&negative != 0 {
		err = fmt.Errorf("CONFIRM RKEY is refused: %x", answer)
	}
	return err
}

// confirm is the handshake from our module's ACCEPT, or our own, up to CONFIRM.
func (c *conn) confirm(ctx context.Context) error {
	if !c.g.server {
		return inTurn(ctx, c.accepted, c.announce, c.answer)
	}
	return inTurn(ctx, c.announce, c.answer, c.confirmed)
}

// inTurn does one thing after the other, until one fails.
func inTurn(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// answer sends our CONFIRM, or ACCEPT.
func (c *conn) answer(ctx context.Context) error {
	kind := byte(peer.Confirm)
	if c.g.server {
		kind = peer.Accept
	}
	msg := c.us.Message(kind)
	if c.corrupt != nil {
		msg = c.corrupt(msg)
	}
	return c.tcp.Write(ctx, msg)
}

func (c *conn) accepted(ctx context.Context) error  { return c.learn(ctx, peer.Accept) }
func (c *conn) confirmed(ctx context.Context) error { return c.learn(ctx, peer.Confirm) }

// begin is the handshake up to PROPOSAL.
func (c *conn) begin(ctx context.Context) error {
	if c.g.server {
		return c.proposed(ctx)
	}
	return c.propose(ctx)
}

// settle is the end of the handshake.
func (c *conn) settle(ctx context.Context) error {
	if c.us.First {
		if err := c.g.linkUp(ctx); err != nil {
			return err
		}
	}
	return c.settled(ctx)
}

// settled waits for the application.
func (c *conn) settled(ctx context.Context) error {
	go func() {
		defer close(c.over)
		_ = c.tcp.Serve(ctx, c.stop)
	}()
	if !c.g.server {
		return c.g.until(ctx, "accept()", func() bool {
			c.app = c.g.n.echo.app(c.tcp.Self)
			return c.app != nil
		})
	}
	select {
	case err := <-c.told:
		return err
	case <-ctx.Done():
		return fmt.Errorf("connect(): %w", ctx.Err())
	}
}

// open makes a connection of a group. It is SMC-R when it returns.
func (g *group) open(ctx context.Context) (*conn, error) {
	c := g.conn()
	return c, inTurn(ctx, c.begin, c.confirm, c.settle)
}

// declined waits for a DECLINE for one of some reasons, and checks that the connection is one of TCP from then on.
func (c *conn) declined(ctx context.Context, reasons ...uint32) error {
	m, err := c.tcp.Message(ctx, peer.Decline)
	if err != nil {
		return err
	}
	if !slices.Contains(reasons, peer.Reason(m)) {
		return fmt.Errorf("declined for %#08x, want %#08x", peer.Reason(m), reasons)
	}
	return c.byTCP(ctx)
}

// byTCP checks that the connection is one of TCP, and ends it.
func (c *conn) byTCP(ctx context.Context) error {
	hello := []byte("by TCP, then")
	if err := c.tcp.Write(ctx, hello); err != nil {
		return err
	}
	if err := c.tcp.Expect(ctx, hello); err != nil {
		return err
	}
	if err := c.tcp.Push(c.tcp.Segment(peer.ACK | peer.FIN)); err != nil {
		return err
	}
	return c.tcp.Ended(ctx)
}

// heard takes a message. The caller holds the group's lock.
func (c *conn) heard(m cdc) {
	c.theirProd, c.theirCons = m.prod.pos(len(c.rmb.Bytes)), m.cons.pos(c.size)
	c.theirState |= m.state
	c.messages++
}

// next is what is to be said now.
func (c *conn) next() cdc {
	c.seq++
	c.toldCons = c.cons
	return cdc{c.seq, c.them.Token, at(c.prod, c.size), at(c.cons, len(c.rmb.Bytes)), 0, c.state}
}

// tell says it, with changes if there are any, and waits until it has arrived.
func (c *conn) tell(ctx context.Context, changes ...func(m *cdc)) error {
	m := c.next()
	for _, change := range changes {
		change(&m)
	}
	return c.g.says(ctx, m.marshal())
}

// put writes into their ring, and moves on; it does not tell.
func (c *conn) put(data []byte) error {
	for len(data) > 0 {
		off := int(c.prod % uint64(c.size))
		n := min(len(data), c.size-off)
		if err := c.g.qp.Write(c.them.RMB+uint64(off), c.them.Rkey, data[:n]); err != nil {
			return err
		}
		c.prod += uint64(n)
		data = data[n:]
	}
	return nil
}

// write sends data, as fast as there is space.
func (c *conn) write(ctx context.Context, data []byte) error {
	for len(data) > 0 {
		n := 0
		err := c.g.until(ctx, "space", func() bool {
			n = min(len(data), c.size-int(c.prod-c.theirCons))
			return n > 0
		})
		if err == nil {
			err = c.put(data[:n])
		}
		if err == nil {
			err = c.tell(ctx)
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// read waits for so many bytes, and tells that it has them.
func (c *conn) read(ctx context.Context, n int) ([]byte, error) {
	got := make([]byte, 0, n)
	for len(got) < n {
		var part int
		err := c.g.until(ctx, "data", func() bool {
			part = min(n-len(got), int(c.theirProd-c.cons))
			return part > 0
		})
		if err != nil {
			return got, err
		}
		for range part {
			got = append(got, c.rmb.Bytes[c.cons%uint64(len(c.rmb.Bytes))])
			c.cons++
		}
		if err := c.tell(ctx); err != nil {
			return got, err
		}
	}
	return got, nil
}

// exchange sends random bytes, and checks that they come back.
func (c *conn) exchange(ctx context.Context, n int) error {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	const part = 30000
	for len(data) > 0 {
		some := data[:min(part, len(data))]
		if err := c.write(ctx, some); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		got, err := c.read(ctx, len(some))
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if !bytes.Equal(got, some) {
			return errWrong
		}
		data = data[len(some):]
	}
	return nil
}

var errWrong = errors.New("wrong data")

// close ends the connection, and checks that the application sees a clean end, and that our module says so.
func (c *conn) close(ctx context.Context) error {
	c.state |= stateClosed
	if err := c.tell(ctx); err != nil {
		return err
	}
	if err := c.app.wait(ctx); err != nil {
		return err
	}
	if c.app.err != nil {
		return fmt.Errorf("the application: %w", c.app.err)
	}
	err := c.g.until(ctx, "close", func() bool { return c.theirState&stateClosed != 0 })
	c.hangUp()
	return err
}

// hangUp ends TCP's part, and forgets the connection.
func (c *conn) hangUp() {
	close(c.stop)
	<-c.over
	_ = c.tcp.Push(c.tcp.Segment(peer.ACK | peer.FIN))
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	delete(c.g.conns, c.us.Token)
}
