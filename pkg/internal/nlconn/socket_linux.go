// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"os"
	"sync/atomic"
	"time"

	"github.com/mdlayher/netlink"
	"github.com/mdlayher/socket"
	"golang.org/x/sys/unix"
)

// receiveSize is larger than any netlink datagram: the kernel makes those of a dump as large as the reader's buffer,
// but not larger than 32 KiB.
const receiveSize = 64 << 10

// Socket is the socket below a netlink.Conn. It differs from the library's own socket in four ways:
//   - it reports an interrupted dump when only the message that ends the dump has the flag;
//   - it discards the rest of an answer whose receiver gave up, instead of returning it to the next request;
//   - it discards replies to other requests, also when the receiver reads a stream instead of calling Execute;
//   - it reads each datagram with one system call into a large buffer, so that the kernel makes large datagrams.
//
// Its methods are those that netlink.Conn looks for. Send and receive must not run at the same time.
type Socket struct {
	c   *socket.Conn
	buf []byte
	// sequence is that of the last request, pending whether its last reply is still to come.
	sequence uint32
	pending  bool
	// closed is set by Close: the library has several errors for a closed file, which become os.ErrClosed.
	closed atomic.Bool
	// intr is set once a message of the last answer is marked as interrupted.
	intr bool
}

// open opens a netlink socket in the network namespace of the calling thread and returns it with its port ID.
func open(protocol int) (*Socket, uint32, error) {
	c, err := socket.Socket(unix.AF_NETLINK, unix.SOCK_RAW, protocol, "netlink", nil)
	if err != nil {
		return nil, 0, err
	}
	portID, err := setUp(c)
	if err != nil {
		_ = c.Close()
		return nil, 0, err
	}
	return NewSocket(c), portID, nil
}

// NewSocket returns a Socket on c, which is a netlink socket or, in tests, one end of a socket pair.
func NewSocket(c *socket.Conn) *Socket {
	return &Socket{c: c, buf: make([]byte, receiveSize)}
}

// setUp binds c and connects it to the kernel, after which no process can send it anything.
func setUp(c *socket.Conn) (portID uint32, err error) {
	kernel := &unix.SockaddrNetlink{Family: unix.AF_NETLINK}
	if err := c.Bind(kernel); err != nil {
		return 0, err
	}
	if _, err := c.Connect(context.Background(), kernel); err != nil {
		return 0, err
	}
	// Every kernel with the SMC families has both options. SMC's commands and smc_diag ignore strict checking so far; a
	// newer module may honour it.
	for _, option := range []int{unix.NETLINK_EXT_ACK, unix.NETLINK_GET_STRICT_CHK} {
		err := c.SetsockoptInt(unix.SOL_NETLINK, option, 1)
		if err != nil && !errors.Is(err, unix.ENOPROTOOPT) {
			return 0, err
		}
	}
	sa, err := c.Getsockname()
	if err != nil {
		return 0, err
	}
	return sa.(*unix.SockaddrNetlink).Pid, nil
}

// Interrupted reports whether the kernel marked the answer to the last request as interrupted.
func (s *Socket) Interrupted() bool { return s.intr }

// Close closes the socket. Unlike the other methods it may be called at any time.
func (s *Socket) Close() error {
	s.closed.Store(true)
	return s.c.Close()
}

// closedError replaces err by os.ErrClosed if that is the cause.
func (s *Socket) closedError(err error) error {
	if s.closed.Load() {
		return os.ErrClosed
	}
	return err
}

// SetDeadline sets the time at which sending and receiving fail.
func (s *Socket) SetDeadline(t time.Time) error { return s.c.SetDeadline(t) }

// SetReadDeadline sets the time at which receiving fails.
func (s *Socket) SetReadDeadline(t time.Time) error { return s.c.SetReadDeadline(t) }

// SetWriteDeadline sets the time at which sending fails.
func (s *Socket) SetWriteDeadline(t time.Time) error { return s.c.SetWriteDeadline(t) }

// SetWriteBuffer sets how many bytes the socket may send at once; a request is one message.
func (s *Socket) SetWriteBuffer(bytes int) error { return s.c.SetWriteBuffer(bytes) }

// Send sends a request. Before that it discards the rest of the previous answer, because the kernel refuses a second dump on
// a socket until the first one is read.
func (s *Socket) Send(m netlink.Message) error {
	for s.pending {
		if _, err := s.readDatagram(); err != nil {
			return err
		}
	}
	b, err := m.MarshalBinary()
	if err != nil {
		return err
	}
	if _, err := s.c.Sendmsg(context.Background(), b, nil, nil, 0); err != nil {
		return s.closedError(err)
	}
	s.sequence = m.Header.Sequence
	s.pending = m.Header.Flags&(netlink.Dump|netlink.Acknowledge) != 0
	s.intr = false
	return nil
}

// SendMessages sends requests one by one.
func (s *Socket) SendMessages(messages []netlink.Message) error {
	for _, m := range messages {
		if err := s.Send(m); err != nil {
			return err
		}
	}
	return nil
}

// Receive returns the messages of one datagram.
func (s *Socket) Receive() ([]netlink.Message, error) {
	var messages []netlink.Message
	for m, err := range s.ReceiveIter() {
		if err != nil {
			return nil, s.closedError(err)
		}
		messages = append(messages, m)
	}
	return messages, nil
}

// ReceiveIter returns the messages of one datagram that answer the last request; it waits for a datagram that has one.
// The messages stay valid.
func (s *Socket) ReceiveIter() iter.Seq2[netlink.Message, error] {
	return func(yield func(netlink.Message, error) bool) {
		messages, err := s.readDatagram()
		if err != nil {
			yield(netlink.Message{}, err)
			return
		}
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// readDatagram reads datagrams until one has messages for the last request. It parses all messages of a datagram before the
// receiver gets the first one, so that the state of the socket does not depend on how far the receiver reads.
func (s *Socket) readDatagram() ([]netlink.Message, error) {
	for {
		n, _, flags, _, err := s.c.Recvmsg(context.Background(), s.buf, nil, 0)
		if err != nil {
			return nil, s.closedError(err)
		}
		messages, err := s.parse(bytes.Clone(s.buf[:n]))
		if flags&unix.MSG_TRUNC != 0 {
			err = fmt.Errorf("datagram larger than %d bytes", receiveSize)
		}
		if err != nil {
			// The damaged datagram may have had the message that ends the answer: do not wait for it.
			s.pending = false
			return nil, err
		}
		if len(messages) > 0 {
			return messages, nil
		}
	}
}

// parse splits a datagram into messages and discards those that do not answer the last request. It notes whether the answer is
// complete, and whether it was interrupted.
func (s *Socket) parse(b []byte) ([]netlink.Message, error) {
	var messages []netlink.Message
	for len(b) > 0 {
		if len(b) < unix.NLMSG_HDRLEN {
			return nil, fmt.Errorf("%d bytes where a message should start", len(b))
		}
		n := uint64(binary.NativeEndian.Uint32(b))
		aligned := (n + unix.NLMSG_ALIGNTO - 1) &^ (unix.NLMSG_ALIGNTO - 1)
		if n < unix.NLMSG_HDRLEN || n > uint64(len(b)) {
			return nil, fmt.Errorf("message of %d bytes in a datagram with %d left", n, len(b))
		}
		m := netlink.Message{
			Header: netlink.Header{
				Length:   uint32(n),
				Type:     netlink.HeaderType(binary.NativeEndian.Uint16(b[4:])),
				Flags:    netlink.HeaderFlags(binary.NativeEndian.Uint16(b[6:])),
				Sequence: binary.NativeEndian.Uint32(b[8:]),
				PID:      binary.NativeEndian.Uint32(b[12:]),
			},
			Data: b[unix.NLMSG_HDRLEN:n:n],
		}
		b = b[min(aligned, uint64(len(b))):]
		if m.Header.Sequence != s.sequence {
			continue
		}
		switch m.Header.Type {
		case netlink.Overrun:
			return nil, errors.New("messages lost")
		case netlink.Noop:
			continue
		case netlink.Done, netlink.Error:
			s.pending = false
		}
		s.intr = s.intr || m.Header.Type != netlink.Error && m.Header.Flags&netlink.DumpInterrupted != 0
		messages = append(messages, m)
	}
	return messages, nil
}
