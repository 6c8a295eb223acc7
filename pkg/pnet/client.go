// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"context"
	"errors"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Client reads and changes the kernel's PNET table of the network namespace in which New was called. It is safe for
// concurrent use; requests wait for one another.
//
// Each request ends early, with the context's error, when its context is cancelled or its deadline passes. There is no
// other time limit. The kernel may have carried out a change whose context ended while the change was waiting for the
// answer. After that the Client can still be used.
//
// Every error is an *InvalidError, returned before the kernel is asked, or an *smcerr.Error. In addition to the errors that a method
// names, any method may return
//   - ErrNoModule, which is also os.ErrNotExist: no SMC module is loaded (any more);
//   - ErrPermission, which is also os.ErrPermission: the caller may not do this;
//   - ErrNotSupported: the SMC module does not know the request;
//   - ErrMalformed: the answer could not be decoded.
type Client struct {
	conn   *nlconn.Generic
	family nlconn.Family // SMC_PNETID
}

// New is NewContext with a context that does not end.
func New() (*Client, error) { return NewContext(context.Background()) }

// NewContext opens a generic netlink socket in the network namespace of the calling thread and looks the family up, which
// makes the kernel load the module smc if it can. The caller closes the Client. ctx limits the look-up only: it may end once
// NewContext has returned.
func NewContext(ctx context.Context) (*Client, error) {
	conn, err := nlconn.DialGeneric()
	if err != nil {
		return nil, requestError("opening a generic netlink socket", "", err, nil)
	}
	return newClient(ctx, conn)
}

// NewFromConn returns a Client on a connection that is open already, for tests with package genltest. The Client owns
// the connection from then on, and closes it also when NewFromConn fails.
func NewFromConn(conn *genetlink.Conn) (*Client, error) {
	return newClient(context.Background(), nlconn.NewGeneric(conn, nil))
}

// newClient looks the family up on conn. It closes conn if that fails.
func newClient(ctx context.Context, conn *nlconn.Generic) (*Client, error) {
	id, err := conn.LookUp(ctx, Family)
	if err != nil {
		_ = conn.Close()
		return nil, requestError("looking up the netlink family", Family, err, nil)
	}
	return &Client{conn: conn, family: nlconn.Family{ID: id, Version: familyVersion}}, nil
}

// Close closes the socket. A request that waits for an answer fails.
func (c *Client) Close() error { return c.conn.Close() }

// List returns the table, in the order in which entries were added. Any user may read it. Outside of the initial network
// namespace the kernel shows interfaces only. The error may be ErrDumpInterrupted.
//
// The kernel can also be asked for one PNET ID. It answers that in a single message, with the entries that fit, so that
// this package does not do it.
func (c *Client) List(ctx context.Context) (Table, error) {
	const op = "reading the PNET table"
	replies, err := c.conn.Dump(ctx, c.family, CmdGet)
	if err != nil {
		return nil, requestError(op, "", err, nil)
	}
	t, err := parseTable(replies)
	if err != nil {
		return nil, &smcerr.Error{Op: op, Kind: ErrMalformed, Err: err}
	}
	return t, nil
}

// Add adds an entry at the end of the table. The device need not exist: the entry takes effect when it appears. The error may
// be an *InvalidError, or ErrRefused, which is also os.ErrExist. It does not show whether the table already had this entry: use
// Table.Conflict.
func (c *Client) Add(ctx context.Context, e Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	return c.addUnchecked(ctx, e)
}

// addUnchecked adds an entry that the kernel has returned before, and therefore must accept again.
func (c *Client) addUnchecked(ctx context.Context, e Entry) error {
	const op = "adding"
	data, err := encodeEntry(e)
	if err != nil {
		return &smcerr.Error{Op: op, Object: e.String(), Err: err}
	}
	return requestError(op, e.String(), c.conn.Set(ctx, c.family, CmdAdd, data), nil)
}

// Delete deletes all entries of a PNET ID, which is not normalised, because the kernel compares it literally. The kernel
// cannot delete one entry of several: see Diff and Apply. The error may be ErrNoID.
func (c *Client) Delete(ctx context.Context, id ID) error {
	const op = "deleting PNET ID"
	data, err := encodeID(id)
	if err != nil {
		return &smcerr.Error{Op: op, Object: string(id), Err: err}
	}
	return requestError(op, string(id), c.conn.Set(ctx, c.family, CmdDel, data), map[syscall.Errno]error{syscall.ENOENT: ErrNoID})
}

// Flush deletes all entries. It succeeds if the table is empty.
func (c *Client) Flush(ctx context.Context) error {
	// Some kernels answer ENOENT when there was nothing to delete.
	nothing := map[syscall.Errno]error{syscall.ENOENT: ErrNoID}
	err := requestError("emptying the PNET table", "", c.conn.Set(ctx, c.family, CmdFlush, nil), nothing)
	if errors.Is(err, ErrNoID) {
		return nil
	}
	return err
}
