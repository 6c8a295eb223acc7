// SPDX-License-Identifier: Apache-2.0

//go:build linux

package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// Conn is the peer's end of a connection with our module.
type Conn struct {
	Group    *LinkGroup
	TCP      *TCP
	QP       *QP // of the link that it writes to our module by
	RMB      *Region
	Local    EndR  // what ACCEPT or CONFIRM says of this end
	Remote   *EndR // what our module's says
	RingSize int   // of our module's RMB

	// They change CLC messages before they are sent: ACCEPT or CONFIRM, and PROPOSAL.
	Corrupt, CorruptProposal func(msg []byte) []byte

	App       *guest.App                 // at our module's end
	Use       func(a *guest.App, fd int) // what App does after connect(); nil to echo
	Connected <-chan error               // what connect() has returned

	// Fields of the next CDC message. SentCons is the value of Cons in the last one.
	Seq        uint16
	Prod, Cons uint64
	SentCons   uint64
	State      byte

	// Values from our module's CDC messages. Protected by the lock of Group.
	RemoteProd, remoteCons uint64
	RemoteState            byte
	CDCCount               int  // messages
	Validations            int  // of those, how many begin to use another link (RFC 7609, 4.6)
	Gap                    bool // one of these names a message that has not come

	remoteSeq uint16
	keys      map[*QP]LinkKey // of our module's RMB

	stop, stopped chan struct{} // for the goroutine that serves TCP
}

// NewConn prepares a connection. Nothing is sent until Begin.
func (g *LinkGroup) NewConn() *Conn {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.made++
	n := uint32(g.made)
	c := &Conn{Group: g, QP: g.QP, keys: map[*QP]LinkKey{}, stop: make(chan struct{}), stopped: make(chan struct{})}
	c.RMB = &Region{Addr: uint64(n) << 32, Rkey: 0x1000 + n, Bytes: make([]byte, 16384<<SizeCode)}
	c.Local = EndR{
		V1: g.V1, First: !g.Formed, Addr: g.QP.host.Addr, Host: g.Addr, QPN: g.QP.Number, PSN: g.psn, Rkey: c.RMB.Rkey, RMB: c.RMB.Addr,
		Size: SizeCode, MTU: MTUCode, Token: 0xabc000 + n, MaxConns: 255, MaxLinks: 1,
	}
	if g.Wire != nil {
		c.Local.MaxLinks = 2
	}
	if g.Immediate {
		c.Local.Vendor = VendorImmediate | g.Receives<<4
		c.CorruptProposal = func(msg []byte) []byte { return With(msg, 52, 0x02, 'S', 'K', 0x01) }
	}
	g.QP.Region(c.RMB)
	if g.Second != nil {
		g.Second.Region(OnSecond(c.RMB))
	}
	g.conns[c.Local.Token] = c
	port := uint16(20000)
	if g.Server {
		port = 6000
	}
	c.TCP = g.Net.NewTCP(netip.AddrPortFrom(g.Addr, port+uint16(n)))
	return c
}

// propose begins a connection to our module.
func (c *Conn) propose(ctx context.Context) error {
	if err := c.TCP.Connect(ctx, Service, append(bytes.Clone(MSS), Option...)); err != nil {
		return err
	}
	if !Magic(c.TCP.Answer.Options) {
		return fmt.Errorf("no option in the answer: %s", c.TCP.Answer)
	}
	msg := ProposalOf(c.Group.Addr)
	if c.Group.V1 {
		msg = ProposalOfV1(c.Group.Addr, netip.MustParsePrefix(Subnet))
	}
	if c.CorruptProposal != nil {
		msg = c.CorruptProposal(msg)
	}
	return c.TCP.Write(ctx, msg)
}

// WriteImmediate writes data that fits before the end of the ring, with immediate data instead of a CDC message.
func (c *Conn) WriteImmediate(ctx context.Context, data []byte) error {
	err := c.QP.WriteImm(c.Remote.RMB+c.Prod%uint64(c.RingSize), c.Remote.Rkey, data, c.Remote.Token<<24|uint32(c.Cons-c.SentCons))
	c.Prod += uint64(len(data))
	c.SentCons = c.Cons
	c.Seq++
	if err == nil {
		err = c.QP.Flush(ctx)
	}
	return err
}

// recvProposal has an application connect by our module, and waits for its PROPOSAL.
func (c *Conn) recvProposal(ctx context.Context) error {
	c.App, c.Connected = connectApp(c.TCP.Self, c.Use)
	if err := c.TCP.Accept(ctx, append(bytes.Clone(MSS), Option...)); err != nil {
		return err
	}
	want := byte(0x22) // SMC-Rv2 alone
	if c.Group.V1 {
		want = 0x20 // both
	}
	m, err := c.TCP.Message(ctx, Proposal)
	if err == nil && m[7] != want {
		err = fmt.Errorf("not a PROPOSAL of these versions, %#x: %x", want, m)
	}
	return err
}

// recvEnd waits for our module's ACCEPT or CONFIRM, and connects the queue pair if this is first contact.
func (c *Conn) recvEnd(ctx context.Context, kind byte) error {
	m, err := c.TCP.Message(ctx, kind)
	if err != nil {
		return err
	}
	c.Remote, err = ParseR(m)
	if err != nil {
		return err
	}
	from := Service.Addr()
	if !c.Local.First {
		from = c.followLink()
	}
	if c.Remote.V1 != c.Local.V1 || c.Remote.First != c.Local.First || c.Remote.Addr != from || c.Remote.MTU != MTUCode {
		return fmt.Errorf("our module says %+v", c.Remote)
	}
	c.RingSize = 16384 << c.Remote.Size
	if c.Local.First {
		c.Group.QP.Connect(c.Remote.Addr, c.Remote.QPN, c.Remote.PSN, c.Remote.MTU)
	}
	c.keys[c.QP] = LinkKey{Rkey: c.Remote.Rkey, Addr: c.Remote.RMB}
	return nil
}

// AnnounceRMB sends CONFIRM RKEY for the RMB of a connection that is not the first of its group.
func (c *Conn) AnnounceRMB(ctx context.Context) error {
	if c.Local.First {
		return nil
	}
	answer, err := c.Group.Request(ctx, c.Group.confirmRkey(c.RMB))
	if err == nil && answer[3]&Negative != 0 {
		err = fmt.Errorf("CONFIRM RKEY is refused: %x", answer)
	}
	return err
}

// Confirm is the handshake from ACCEPT to CONFIRM.
func (c *Conn) Confirm(ctx context.Context) error {
	if !c.Group.Server {
		return InTurn(ctx, c.RecvAccept, c.AnnounceRMB, c.Answer)
	}
	return InTurn(ctx, c.AnnounceRMB, c.Answer, c.RecvConfirm)
}

// InTurn takes one step after the other, until one fails.
func InTurn(ctx context.Context, steps ...func(context.Context) error) error {
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Answer sends the peer's CONFIRM or ACCEPT.
func (c *Conn) Answer(ctx context.Context) error {
	kind := byte(Confirm)
	if c.Group.Server {
		kind = Accept
	}
	msg := c.Local.Message(kind)
	if c.Corrupt != nil {
		msg = c.Corrupt(msg)
	}
	return c.TCP.Write(ctx, msg)
}

// RecvAccept waits for our module's ACCEPT.
func (c *Conn) RecvAccept(ctx context.Context) error { return c.recvEnd(ctx, Accept) }

// RecvConfirm waits for our module's CONFIRM.
func (c *Conn) RecvConfirm(ctx context.Context) error { return c.recvEnd(ctx, Confirm) }

// Begin is the handshake up to PROPOSAL.
func (c *Conn) Begin(ctx context.Context) error {
	if c.Group.Server {
		return c.recvProposal(ctx)
	}
	return c.propose(ctx)
}

// Finish is the rest of the handshake: CONFIRM LINK if this is first contact, and accept() or connect() of the application.
func (c *Conn) Finish(ctx context.Context) error {
	if c.Local.First {
		if err := c.Group.confirmLink(ctx); err != nil {
			return err
		}
	}
	return c.AwaitApp(ctx)
}

// AwaitApp waits until accept() or connect() of the application has returned, unless that runs in another guest. TCP is served from
// then on.
func (c *Conn) AwaitApp(ctx context.Context) error {
	go func() {
		defer close(c.stopped)
		_ = c.TCP.Serve(ctx, c.stop)
	}()
	if c.Group.Net.Echo == nil {
		return nil
	}
	if !c.Group.Server {
		return c.Group.Until(ctx, "accept()", func() bool {
			c.App = c.Group.Net.Echo.App(c.TCP.Self)
			return c.App != nil
		})
	}
	select {
	case err := <-c.Connected:
		return err
	case <-ctx.Done():
		return fmt.Errorf("connect(): %w", ctx.Err())
	}
}

// Open opens a connection of SMC-R.
func (g *LinkGroup) Open(ctx context.Context) (*Conn, error) {
	c := g.NewConn()
	return c, InTurn(ctx, c.Begin, c.Confirm, c.Finish)
}

// RecvDecline waits for DECLINE with one of these reasons, and checks that the connection then works over TCP.
func (c *Conn) RecvDecline(ctx context.Context, reasons ...uint32) error {
	m, err := c.TCP.Message(ctx, Decline)
	if err != nil {
		return err
	}
	if !slices.Contains(reasons, Reason(m)) {
		return fmt.Errorf("declined for %#08x, want %#08x", Reason(m), reasons)
	}
	return c.UseTCP(ctx)
}

// SendDecline sends DECLINE with these flags in its header, and checks that the connection then works over TCP.
func (c *Conn) SendDecline(ctx context.Context, flags byte) error {
	if err := c.TCP.Write(ctx, With(DeclineV2(), 7, 0x20|flags)); err != nil {
		return err
	}
	return c.UseTCP(ctx)
}

// UseTCP exchanges data over TCP, and closes the connection.
func (c *Conn) UseTCP(ctx context.Context) error {
	hello := []byte("by TCP, then")
	if err := c.TCP.Write(ctx, hello); err != nil {
		return err
	}
	if err := c.TCP.Expect(ctx, hello); err != nil {
		return err
	}
	if err := c.TCP.Push(c.TCP.Segment(ACK | FIN)); err != nil {
		return err
	}
	return c.TCP.Ended(ctx)
}

// received handles a CDC message. The caller holds the group's lock.
func (c *Conn) received(m CDC) {
	if m.Flags&Failover != 0 {
		c.Validations++
		c.Gap = c.Gap || int16(c.remoteSeq-m.Seq) < 0
		return
	}
	c.remoteSeq = m.Seq
	c.RemoteProd, c.remoteCons = m.Prod.pos(len(c.RMB.Bytes)), m.Cons.pos(c.RingSize)
	c.RemoteState |= m.State
	c.CDCCount++
}

// NextCDC is the CDC message that a well-behaved peer sends now.
func (c *Conn) NextCDC() CDC {
	c.Seq++
	c.SentCons = c.Cons
	return CDC{c.Seq, c.Remote.Token, CursorAt(c.Prod, c.RingSize), CursorAt(c.Cons, len(c.RMB.Bytes)), 0, c.State}
}

// SendCDC sends NextCDC with changes, and waits for the acknowledgement.
func (c *Conn) SendCDC(ctx context.Context, changes ...func(m *CDC)) error {
	m := c.NextCDC()
	for _, change := range changes {
		change(&m)
	}
	return c.Group.SendBy(ctx, c.QP, m.Marshal())
}

// Put writes to our module's RMB. It sends no CDC message.
func (c *Conn) Put(data []byte) error {
	for len(data) > 0 {
		off := int(c.Prod % uint64(c.RingSize))
		n := min(len(data), c.RingSize-off)
		if err := c.QP.Write(c.Remote.RMB+uint64(off), c.Remote.Rkey, data[:n]); err != nil {
			return err
		}
		c.Prod += uint64(n)
		data = data[n:]
	}
	return nil
}

// Write writes data as space becomes free, with CDC messages.
func (c *Conn) Write(ctx context.Context, data []byte) error {
	for len(data) > 0 {
		n := 0
		err := c.Group.Until(ctx, "space", func() bool {
			n = min(len(data), c.RingSize-int(c.Prod-c.remoteCons))
			return n > 0
		})
		if err == nil {
			err = c.Put(data[:n])
		}
		if err == nil {
			err = c.SendCDC(ctx)
		}
		if err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// Read waits for n bytes, and sends CDC messages that it has read them.
func (c *Conn) Read(ctx context.Context, n int) ([]byte, error) {
	got := make([]byte, 0, n)
	for len(got) < n {
		var part int
		err := c.Group.Until(ctx, "data", func() bool {
			part = min(n-len(got), int(c.RemoteProd-c.Cons))
			return part > 0
		})
		if err != nil {
			return got, err
		}
		for range part {
			got = append(got, c.RMB.Bytes[c.Cons%uint64(len(c.RMB.Bytes))])
			c.Cons++
		}
		if err := c.SendCDC(ctx); err != nil {
			return got, err
		}
	}
	return got, nil
}

// Exchange writes n random bytes, and checks that the application sends them back.
func (c *Conn) Exchange(ctx context.Context, n int) error {
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(rand.Uint32())
	}
	const part = 30000
	for len(data) > 0 {
		some := data[:min(part, len(data))]
		if err := c.Write(ctx, some); err != nil {
			return fmt.Errorf("write: %w", err)
		}
		got, err := c.Read(ctx, len(some))
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		if !bytes.Equal(got, some) {
			return ErrWrongData
		}
		data = data[len(some):]
	}
	return nil
}

// ErrWrongData is the error of reading other bytes than were to come.
var ErrWrongData = errors.New("wrong data")

// Close closes the connection, and checks that the application sees the end of the stream, and that our module closes, too.
func (c *Conn) Close(ctx context.Context) error {
	c.State |= Closed
	if err := c.SendCDC(ctx); err != nil {
		return err
	}
	if err := c.App.Wait(ctx); err != nil {
		return err
	}
	if c.App.Err != nil {
		return fmt.Errorf("the application: %w", c.App.Err)
	}
	err := c.Group.Until(ctx, "close", func() bool { return c.RemoteState&Closed != 0 })
	c.HangUp()
	return err
}

// HangUp closes the TCP connection, and removes the connection from its group. It sends no CDC message.
func (c *Conn) HangUp() {
	close(c.stop)
	<-c.stopped
	_ = c.TCP.Push(c.TCP.Segment(ACK | FIN))
	c.Group.Remove(c)
}

// AwaitError waits for the application to end with an error. It does not if there is no application yet.
func (c *Conn) AwaitError(ctx context.Context) error {
	if c.App == nil {
		return nil
	}
	if err := c.App.Wait(ctx); err != nil {
		return err
	}
	if c.App.Err == nil {
		return errors.New("the application has got no error")
	}
	return nil
}

// connectApp has an application connect to a peer and then call use, or echo. What connect() returns comes by the channel.
func connectApp(to netip.AddrPort, use func(a *guest.App, fd int)) (a *guest.App, connected <-chan error) {
	if use == nil {
		use = (*guest.App).Run
	}
	a = guest.NewApp()
	result := make(chan error, 1)
	go func() {
		fd, err := guest.Connect(to, Timeout)
		if err == nil {
			err = unix.SetNonblock(fd, true)
		}
		result <- err
		if err != nil {
			if fd >= 0 {
				unix.Close(fd)
			}
			a.Err = err
			close(a.Done)
			return
		}
		use(a, fd)
	}()
	return a, result
}
