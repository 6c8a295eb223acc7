// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"iter"

	"github.com/mdlayher/netlink"
)

// DiagExt is a set of extra information about each socket.
type DiagExt uint8

// What Sockets can be asked for. A socket has it only while it uses the technology that it is about.
const (
	// DiagConnInfo asks for Socket.Conn.
	DiagConnInfo DiagExt = 1 << 0
	// DiagLinkGroup asks for Socket.LinkGroup, which connections over SMC-R have.
	DiagLinkGroup DiagExt = 1 << 1
	// DiagDMB asks for Socket.DMB, which connections over SMC-D have.
	DiagDMB DiagExt = 1 << 3
)

// The request of sock_diag: a message type and a body of fixed layout.
const (
	sockDiagByFamily = 20
	familySMC        = 43
	diagRequestLen   = 52
	diagRequestExt   = 3
)

const opSockets = "list SMC sockets"

// Diag lists the AF_SMC sockets of the network namespace in which NewDiag was called.
//
// A Diag is safe for concurrent use; one listing waits for the other.
type Diag struct {
	conn *netlink.Conn
	busy lock
	// interrupted, if not nil, says whether the message that ended a dump was marked as interrupted.
	interrupted func() bool
}

// NewDiag opens a sock_diag socket in the network namespace of the calling thread. Whether the kernel has smc_diag shows
// in Sockets only. The caller closes the Diag.
func NewDiag() (*Diag, error) { return dialDiag() }

// NewDiagFromConn returns a Diag on a connection that is open already, for tests with package nltest. The Diag owns the
// connection from then on.
func NewDiagFromConn(conn *netlink.Conn) *Diag { return newDiag(conn) }

func newDiag(conn *netlink.Conn) *Diag { return &Diag{conn: conn, busy: newLock()} }

// Close closes the socket. A listing that waits for an answer ends with an error.
func (d *Diag) Close() error { return d.conn.Close() }

// Sockets returns all AF_SMC sockets, in the kernel's order, with the extra information asked for. They are read from
// the kernel while the caller iterates, a few hundred at a time; however many there are, memory does not grow.
//
// An error comes as the last element, with a zero Socket. It is an *Error, as described at Client, and ErrNoModule means
// that smc_diag is missing. ErrDumpInterrupted comes after all the sockets, if the kernel says that the list changed
// while it was read; kernels so far never say so. Cancelling ctx ends the iteration with the context's error.
//
// A loop that is left early reads what remains before it ends. Until then another call of Sockets waits: one inside the
// loop would wait for ever, unless ctx ends it.
func (d *Diag) Sockets(ctx context.Context, ext DiagExt) iter.Seq2[Socket, error] {
	return func(yield func(Socket, error) bool) {
		interrupted, more, err := d.dump(ctx, ext, yield)
		switch {
		case !more:
		case err != nil:
			yield(Socket{}, diagError(err))
		case interrupted:
			yield(Socket{}, &Error{Op: opSockets, Kind: ErrDumpInterrupted, Remedy: "try again"})
		}
	}
}

// dump makes one dump and hands each socket to yield. more is false once yield has asked for the end. The connection is
// free again when it returns.
func (d *Diag) dump(
	ctx context.Context, ext DiagExt, yield func(Socket, error) bool,
) (interrupted, more bool, err error) {
	if err := d.busy.acquire(ctx); err != nil {
		return false, true, err
	}
	defer d.busy.release()
	defer interruptOn(ctx, d.conn)()

	sent, err := d.conn.Send(netlink.Message{
		Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump},
		Data:   diagRequest(ext),
	})
	if err != nil {
		return false, true, contextError(ctx, err)
	}
	for m, err := range d.conn.ReceiveIter() {
		if err == nil {
			err = netlink.Validate(sent, []netlink.Message{m})
		}
		if ctx.Err() != nil || err != nil {
			return false, true, contextError(ctx, err)
		}
		interrupted = interrupted || m.Header.Flags&netlink.DumpInterrupted != 0
		if m.Header.Type != sockDiagByFamily {
			continue
		}
		s, err := parseSocket(m.Data)
		if err != nil {
			return false, true, &Error{Op: opSockets, Kind: ErrMalformed, Err: err}
		}
		if !yield(s, nil) {
			return false, false, nil
		}
	}
	return interrupted || d.interrupted != nil && d.interrupted(), true, nil
}

// diagRequest returns the body of a request for every AF_SMC socket.
func diagRequest(ext DiagExt) []byte {
	b := make([]byte, diagRequestLen)
	b[0] = familySMC
	b[diagRequestExt] = byte(ext)
	return b
}
