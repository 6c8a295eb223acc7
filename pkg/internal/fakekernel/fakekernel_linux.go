// SPDX-License-Identifier: Apache-2.0

// Package fakekernel is the kernel's end of a netlink connection in tests: it receives requests and sends datagrams byte by
// byte, or sends nothing, so that a request waits. Unlike the fakes of packages nltest and genltest, the connection has
// deadlines.
package fakekernel

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/socket"
	"github.com/smckit/smckit/pkg/internal/attrtest"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
	"golang.org/x/sys/unix"
)

// PortID is the port ID of connections to a Kernel.
const PortID = 7

// Kernel is one end of a socket pair.
type Kernel struct {
	tb   testing.TB
	conn *socket.Conn
}

// New returns the socket of a client and the Kernel at its other end. Both are closed when the test ends.
func New(tb testing.TB) (*nlconn.Socket, *Kernel) {
	tb.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		tb.Fatal(err)
	}
	var ends [2]*socket.Conn
	for i, fd := range fds {
		if ends[i], err = socket.New(fd, "fake"); err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { _ = ends[i].Close() })
	}
	return nlconn.NewSocket(ends[0]), &Kernel{tb: tb, conn: ends[1]}
}

// Serve runs fn, which acts as the kernel, concurrently with the test. The test ends when fn has returned.
func Serve(tb testing.TB, fn func()) {
	tb.Helper()
	end := make(chan struct{})
	go func() {
		defer close(end)
		fn()
	}()
	tb.Cleanup(func() { <-end })
}

// Request waits for a request. It ends the calling goroutine if there is none.
func (k *Kernel) Request() netlink.Message {
	m, err := k.TryRequest()
	if err != nil {
		k.tb.Errorf("fake kernel: %v", err)
		runtime.Goexit()
	}
	return m
}

// TryRequest waits for a request. It fails once the client has closed its socket.
func (k *Kernel) TryRequest() (m netlink.Message, err error) {
	b := make([]byte, 4096)
	n, err := k.conn.Read(b)
	if err != nil {
		return m, err
	}
	return m, m.UnmarshalBinary(b[:n])
}

// Send sends one datagram with the messages.
func (k *Kernel) Send(msgs ...netlink.Message) {
	var b []byte
	for _, m := range msgs {
		b = append(b, Marshal(m)...)
	}
	k.SendBytes(b)
}

// SendBytes sends one datagram. It ends the calling goroutine if that fails.
func (k *Kernel) SendBytes(b []byte) {
	if _, err := k.conn.Write(b); err != nil {
		k.tb.Errorf("fake kernel: write: %v", err)
		runtime.Goexit()
	}
}

// SendFamily answers the request req, which looks a family up, with the number id.
func (k *Kernel) SendFamily(req netlink.Message, id uint16) {
	attr := attrtest.Attr(1, string(binary.NativeEndian.AppendUint16(nil, id)))
	k.Send(netlink.Message{
		Header: netlink.Header{Type: unix.GENL_ID_CTRL, Sequence: req.Header.Sequence, PID: PortID},
		Data:   []byte("\x01\x02\x00\x00" + attr),
	})
}

// Marshal encodes a message with its length and padding.
func Marshal(m netlink.Message) []byte {
	n := unix.NLMSG_HDRLEN + len(m.Data)
	b := binary.NativeEndian.AppendUint32(nil, uint32(n))
	b = binary.NativeEndian.AppendUint16(b, uint16(m.Header.Type))
	b = binary.NativeEndian.AppendUint16(b, uint16(m.Header.Flags))
	b = binary.NativeEndian.AppendUint32(b, m.Header.Sequence)
	b = binary.NativeEndian.AppendUint32(b, m.Header.PID)
	b = append(b, m.Data...)
	return append(b, make([]byte, -n&3)...)
}

// Done is the message that ends the answer to the dump req.
func Done(req netlink.Message) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: netlink.Done, Flags: netlink.Multi, Sequence: req.Header.Sequence, PID: PortID},
		Data:   make([]byte, 4),
	}
}

// Ack is the answer to the change req: an errno, or success if errno is 0.
func Ack(req netlink.Message, errno syscall.Errno) netlink.Message {
	return netlink.Message{
		Header: netlink.Header{Type: netlink.Error, Flags: netlink.Capped, Sequence: req.Header.Sequence, PID: PortID},
		Data:   append(binary.NativeEndian.AppendUint32(nil, -uint32(errno)), Marshal(netlink.Message{Header: req.Header})...),
	}
}

// Answer sends an empty answer to req: to a dump the message that ends it, to a change that it succeeded.
func (k *Kernel) Answer(req netlink.Message) {
	if req.Header.Flags&netlink.Dump == netlink.Dump {
		k.Send(Done(req))
	} else {
		k.Send(Ack(req, 0))
	}
}

// CheckCancelled checks that call returns context.Canceled when its context ends after the kernel has received the request
// and before it has answered. Then it answers the request and checks that the late answer does not disturb a second call, which
// gets an empty answer and may return any result of it.
func (k *Kernel) CheckCancelled(call func(context.Context) error) {
	k.tb.Helper()
	ctx, cancel := context.WithCancel(k.tb.Context())
	defer cancel()
	received := make(chan netlink.Message, 1)
	Serve(k.tb, func() {
		received <- k.Request()
		cancel()
	})
	if err := call(ctx); !errors.Is(err, context.Canceled) || smcerr.Kind(err) != nil {
		k.tb.Errorf("cancelled: %v", err)
	}
	Serve(k.tb, func() {
		k.Answer(<-received)
		k.Answer(k.Request())
	})
	if err := call(k.tb.Context()); errors.Is(err, context.Canceled) || errors.Is(err, os.ErrDeadlineExceeded) {
		k.tb.Errorf("after a cancelled request: %v", err)
	}
}
