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
	"time"
)

// resendAfter is when a segment that was not acknowledged is sent again.
const resendAfter = time.Second

// ErrReset is the error of waiting for something on a connection that the kernel has reset.
var ErrReset = errors.New("connection reset")

// TCP is one end of a TCP connection. It acknowledges what it receives in order, and repeats what Send waits for; its user
// does the rest. Only one goroutine may use it.
type TCP struct {
	Self, Kernel netip.AddrPort
	Window       uint16   // that is offered
	Mute         bool     // does not acknowledge
	Answer       *Segment // the SYN or SYN-ACK of the kernel that the connection began with
	Answers      int      // how many there were
	Last         *Segment // the latest of them
	Next         uint32   // what is sent next
	Got          []byte   // not yet taken by Read
	Fin, Reset   bool     // what the kernel has sent

	net   *Net
	in    chan *Segment
	want  uint32 // what is expected next
	acked uint32 // what the kernel has acknowledged
}

// NewTCP makes an end with an address of the network.
func (n *Net) NewTCP(self netip.AddrPort) *TCP {
	p := &TCP{Self: self, Window: 0xffff, Next: 1e9, net: n, in: make(chan *Segment, 1024)}
	p.acked = p.Next
	n.mu.Lock()
	defer n.mu.Unlock()
	n.peers[self] = p
	return p
}

// Segment returns a segment at the current position of the connection.
func (p *TCP) Segment(flags byte, payload ...byte) *Segment {
	return &Segment{Src: p.Self, Dst: p.Kernel, Seq: p.Next, Ack: p.want, Flags: flags, Window: p.Window, Payload: payload}
}

// Put sends a segment as it is. The position stays the same.
func (p *TCP) Put(s *Segment) error { return p.net.write(s) }

// Push sends a segment, and moves the position behind it without waiting for an acknowledgement.
func (p *TCP) Push(s *Segment) error {
	p.Next += s.span()
	return p.Put(s)
}

// Send sends a segment, and repeats it until it is acknowledged.
func (p *TCP) Send(ctx context.Context, s *Segment) error {
	if err := p.Push(s); err != nil {
		return err
	}
	for {
		err := p.upTo(ctx, resendAfter, func() bool { return int32(p.acked-p.Next) >= 0 })
		if !errors.Is(err, errLater) {
			return err
		}
		s.Ack, s.Window = p.want, p.Window
		if err := p.Put(s); err != nil {
			return err
		}
	}
}

// Write sends data in one segment, and waits until it is acknowledged.
func (p *TCP) Write(ctx context.Context, data []byte) error {
	return p.Send(ctx, p.Segment(ACK|PSH, data...))
}

// errLater says that the time for one try is over.
var errLater = errors.New("not yet")

// upTo handles segments until a condition holds.
func (p *TCP) upTo(ctx context.Context, d time.Duration, done func() bool) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for !done() {
		if p.Reset {
			return ErrReset
		}
		select {
		case s := <-p.in:
			if err := p.take(s); err != nil {
				return err
			}
		case <-timer.C:
			return errLater
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Until handles segments until a condition holds. It returns ErrReset if the kernel resets the connection before.
func (p *TCP) Until(ctx context.Context, done func() bool) error {
	return p.upTo(ctx, time.Hour, done)
}

// Serve handles segments until done is closed.
func (p *TCP) Serve(ctx context.Context, done <-chan struct{}) error {
	for {
		select {
		case s := <-p.in:
			if err := p.take(s); err != nil {
				return err
			}
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// take handles a segment as a receiver does.
func (p *TCP) take(s *Segment) error {
	// An earlier connection may have had the same address.
	if s.Dst.Port() != p.Self.Port() || p.Kernel.IsValid() && s.Src != p.Kernel || !p.Kernel.IsValid() && !s.Has(SYN) {
		return nil
	}
	if s.Has(RST) {
		p.Reset = true
		return nil
	}
	if s.Has(SYN) {
		return p.takeSYN(s)
	}
	if s.Has(ACK) && int32(s.Ack-p.acked) > 0 {
		p.acked = s.Ack
	}
	if s.span() == 0 {
		// One byte below what has been acknowledged: a keepalive probe.
		if s.Seq == p.want-1 && p.Answer != nil && !p.Mute {
			return p.Put(p.Segment(ACK))
		}
		return nil
	}
	if s.Seq == p.want && !p.Mute {
		p.want += s.span()
		p.Got = append(p.Got, s.Payload...)
		p.Fin = p.Fin || s.Has(FIN)
	}
	if p.Mute {
		return nil
	}
	return p.Put(p.Segment(ACK))
}

// takeSYN starts the connection, or acknowledges a repeated SYN-ACK.
func (p *TCP) takeSYN(s *Segment) error {
	p.Answers++
	p.Last = s
	if p.Answer != nil {
		if p.Mute || !s.Has(ACK) {
			return nil
		}
		return p.Put(p.Segment(ACK))
	}
	p.Answer, p.Kernel, p.want = s, s.Src, s.Seq+1
	if s.Has(ACK) {
		p.acked = s.Ack
	}
	return nil
}

// Read waits for n bytes and takes them.
func (p *TCP) Read(ctx context.Context, n int) ([]byte, error) {
	err := p.Until(ctx, func() bool { return len(p.Got) >= n || p.Fin })
	if err == nil && len(p.Got) < n {
		err = errors.New("connection ended")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %d of %d bytes are there: %x", err, len(p.Got), n, p.Got)
	}
	b := p.Got[:n]
	p.Got = p.Got[n:]
	return b, nil
}

// Expect waits for exactly these bytes.
func (p *TCP) Expect(ctx context.Context, want []byte) error {
	got, err := p.Read(ctx, len(want))
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("got %q, want %q", got, want)
	}
	return err
}

// Message waits for a CLC message and takes it.
func (p *TCP) Message(ctx context.Context, kind byte) ([]byte, error) {
	const header = 8
	h, err := p.Read(ctx, header)
	if err != nil {
		return nil, err
	}
	rest, err := p.Read(ctx, max(0, int(binary.BigEndian.Uint16(h[5:]))-header))
	if err != nil {
		return nil, err
	}
	m := append(bytes.Clone(h), rest...)
	if m[4] != kind {
		return m, fmt.Errorf("got a message of type %d, want %d: %x", m[4], kind, m)
	}
	return m, nil
}

// Ended waits until the kernel has closed or reset the connection.
func (p *TCP) Ended(ctx context.Context) error {
	err := p.Until(ctx, func() bool { return p.Fin || p.Reset })
	if errors.Is(err, ErrReset) {
		return nil
	}
	return err
}

// Listen waits for the SYN of the kernel's connection.
func (p *TCP) Listen(ctx context.Context) error {
	return p.Until(ctx, func() bool { return p.Answer != nil })
}

// Accept waits for the SYN of the kernel's connection and answers it with these options.
func (p *TCP) Accept(ctx context.Context, options []byte) error {
	if err := p.Listen(ctx); err != nil {
		return err
	}
	s := p.Segment(SYN | ACK)
	s.Options = Pad(options)
	return p.Send(ctx, s)
}

// Connect opens a connection to the kernel with a SYN that has these options.
func (p *TCP) Connect(ctx context.Context, to netip.AddrPort, options []byte) error {
	if err := p.HalfOpen(ctx, to, options); err != nil {
		return err
	}
	return p.Put(p.Segment(ACK))
}

// HalfOpen sends a SYN and waits for the SYN-ACK, but does not acknowledge it.
func (p *TCP) HalfOpen(ctx context.Context, to netip.AddrPort, options []byte) error {
	p.Kernel = to
	s := p.Segment(SYN)
	s.Options = Pad(options)
	if err := p.Send(ctx, s); err != nil {
		return err
	}
	if p.Answer == nil {
		return fmt.Errorf("%s is still that of an earlier connection to the kernel", p.Self)
	}
	return nil
}
