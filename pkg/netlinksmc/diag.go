// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"iter"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
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
	conn *nlconn.Conn
}

// NewDiag opens a sock_diag socket in the network namespace of the calling thread. It does not ask whether the kernel has
// smc_diag: Sockets does. The caller closes the Diag.
func NewDiag() (*Diag, error) {
	conn, err := nlconn.Dial(nlconn.SockDiag)
	if err != nil {
		return nil, openError("open a sock_diag socket", err)
	}
	return &Diag{conn: conn}, nil
}

// NewDiagFromConn returns a Diag on a connection that is open already, for tests with package nltest. The Diag owns the
// connection from then on.
func NewDiagFromConn(conn *netlink.Conn) *Diag { return &Diag{conn: nlconn.New(conn, nil)} }

// Close closes the socket. A listing that waits for an answer ends with an error.
func (d *Diag) Close() error { return d.conn.Close() }

// Sockets returns all AF_SMC sockets of the network namespace, in the kernel's order, with the extra information that ext
// asks for. It reads them from the kernel while the caller iterates, a few hundred at a time, so that memory does not grow
// with their number.
//
// An error comes as the last element, with a zero Socket. It is an *smcerr.Error, as described at Client, and ErrNoModule means that
// smc_diag is missing. ErrDumpInterrupted comes after all sockets, if the kernel reports that the list changed while it was
// read; kernels up to 7.2 never report it. When ctx ends, the iteration ends with the context's error.
//
// A loop that ends early reads the rest of the answer before it returns. Until then other calls of Sockets wait: a call
// inside the loop would wait for ever, unless its ctx ends.
func (d *Diag) Sockets(ctx context.Context, ext DiagExt) iter.Seq2[Socket, error] {
	return func(yield func(Socket, error) bool) {
		request := netlink.Message{
			Header: netlink.Header{Type: sockDiagByFamily, Flags: netlink.Request | netlink.Dump},
			Data:   diagRequest(ext),
		}
		var malformed error
		for m, err := range d.conn.Stream(ctx, request) {
			if err != nil {
				yield(Socket{}, diagError(err))
				return
			}
			if m.Header.Type != sockDiagByFamily {
				continue
			}
			var s Socket
			if s, malformed = parseSocket(m.Data); malformed != nil || !yield(s, nil) {
				break
			}
		}
		if malformed != nil {
			yield(Socket{}, &smcerr.Error{Op: opSockets, Kind: ErrMalformed, Err: malformed})
		}
	}
}

// diagRequest returns the body of a request for every AF_SMC socket.
func diagRequest(ext DiagExt) []byte {
	b := make([]byte, diagRequestLen)
	b[0] = familySMC
	b[diagRequestExt] = byte(ext)
	return b
}
