// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// Family is the name of the generic netlink family that serves the PNET table.
const Family = "SMC_PNETID"

// familyVersion is that of SMCR_GENL_FAMILY_VERSION in <linux/smc.h>.
const familyVersion = 1

// Commands of the family: the first enum of commands in <linux/smc.h>.
const (
	cmdGet   = 1
	cmdAdd   = 2
	cmdDel   = 3
	cmdFlush = 4
)

// dumpTries is how often the table is read until it does not change meanwhile.
const dumpTries = 3

// Client talks to the kernel's PNET table of the network namespace in which New was called. It is safe for concurrent
// use; requests wait for one another.
//
// A context is looked at before a request is sent. The kernel answers at once, so nothing is gained by giving up later,
// and what became of the request would not be known.
//
// Every error is an *InvalidError, found before the kernel was asked, or an *Error. Besides what a method names, any
// method may return
//   - ErrNoModule, which is also os.ErrNotExist: no SMC module is loaded (any more);
//   - os.ErrPermission: the caller may not do this;
//   - ErrNotSupported: the SMC module does not know the request;
//   - ErrMalformed: the answer could not be decoded.
type Client struct {
	mu     sync.Mutex
	conn   *genetlink.Conn
	family uint16
}

// New opens a generic netlink socket in the network namespace of the calling thread and looks the family up, which makes
// the kernel load the module if it can.
func New() (*Client, error) {
	conn, err := genetlink.Dial(&netlink.Config{Strict: true})
	if err != nil {
		return nil, requestError("opening a generic netlink socket", err, nil)
	}
	return NewFromConn(conn)
}

// NewFromConn returns a Client on a connection that is open already, for tests with package genltest. The Client owns
// the connection from then on; NewFromConn closes it when it fails.
func NewFromConn(conn *genetlink.Conn) (*Client, error) {
	c := &Client{conn: conn}
	if err := c.lookUp(); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// lookUp finds the number of the family. The library's function for this panics on answers it does not expect.
func (c *Client) lookUp() error {
	const op = "looking up the netlink family " + Family
	request := genetlink.Message{
		Header: genetlink.Header{Command: getFamily, Version: controllerVersion},
		Data:   encodeFamilyName(),
	}
	replies, err := c.conn.Execute(request, controllerID, netlink.Request)
	if err != nil {
		return requestError(op, err, nil)
	}
	if c.family, err = parseFamilyID(replies); err != nil {
		return &Error{Op: op, Kind: ErrMalformed, Err: err}
	}
	return nil
}

// Close closes the socket.
func (c *Client) Close() error { return c.conn.Close() }

// List returns the table, in the order in which entries were added. Anybody may read it. Outside of the initial network
// namespace the kernel shows interfaces only. The error may be ErrDumpInterrupted.
//
// The kernel can also be asked for one PNET ID. It answers that in a single message, with the entries that fit, so that
// this package does not do it.
func (c *Client) List(ctx context.Context) (Table, error) {
	const op = "reading the PNET table"
	for range dumpTries {
		replies, interrupted, err := c.execute(ctx, cmdGet, netlink.Request|netlink.Dump, nil)
		if err != nil {
			return nil, requestError(op, err, nil)
		}
		if interrupted {
			continue
		}
		t, err := parseTable(replies)
		if err != nil {
			return nil, &Error{Op: op, Kind: ErrMalformed, Err: err}
		}
		return t, nil
	}
	return nil, &Error{Op: op, Kind: ErrDumpInterrupted}
}

// Add adds an entry at the end of the table. The device need not exist: the entry takes effect when it appears. The
// error may be an *InvalidError, or ErrRefused, which is also os.ErrExist and does not tell whether this very entry was
// there already: Table.Conflict does.
func (c *Client) Add(ctx context.Context, e Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	return c.addUnchecked(ctx, e)
}

// addUnchecked adds an entry that the kernel has returned before, and so must take again.
func (c *Client) addUnchecked(ctx context.Context, e Entry) error {
	data, err := encodeEntry(e)
	if err != nil {
		return &Error{Op: "adding " + e.String(), Err: err}
	}
	return c.set(ctx, cmdAdd, "adding "+e.String(), data, nil)
}

// Delete deletes all entries of a PNET ID, which is taken as it is, for the kernel compares it literally. The kernel
// cannot delete one entry of several: see Diff and Apply. The error may be ErrNoID.
func (c *Client) Delete(ctx context.Context, id ID) error {
	op := "deleting PNET ID " + string(id)
	data, err := encodeID(id)
	if err != nil {
		return &Error{Op: op, Err: err}
	}
	return c.set(ctx, cmdDel, op, data, map[syscall.Errno]error{syscall.ENOENT: ErrNoID})
}

// Flush deletes all entries. Those of an empty table are deleted with success.
func (c *Client) Flush(ctx context.Context) error {
	// Some kernels answer ENOENT when there was nothing to delete.
	nothing := map[syscall.Errno]error{syscall.ENOENT: ErrNoID}
	err := c.set(ctx, cmdFlush, "emptying the PNET table", nil, nothing)
	if errors.Is(err, ErrNoID) {
		return nil
	}
	return err
}

func (c *Client) set(ctx context.Context, cmd uint8, op string, data []byte, kinds map[syscall.Errno]error) error {
	_, _, err := c.execute(ctx, cmd, netlink.Request|netlink.Acknowledge, data)
	return requestError(op, err, kinds)
}

// execute sends one request and returns its replies, and whether the kernel has marked them as inconsistent.
func (c *Client) execute(
	ctx context.Context, cmd uint8, flags netlink.HeaderFlags, data []byte,
) ([]genetlink.Message, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	request := genetlink.Message{Header: genetlink.Header{Command: cmd, Version: familyVersion}, Data: data}
	sent, err := c.conn.Send(request, c.family, flags)
	if err != nil {
		return nil, false, err
	}
	replies, headers, err := c.conn.Receive()
	if err != nil {
		return nil, false, err
	}
	if err := netlink.Validate(sent, headers); err != nil {
		return nil, false, err
	}
	interrupted := false
	for _, h := range headers {
		interrupted = interrupted || h.Header.Flags&netlink.DumpInterrupted != 0
	}
	return replies, interrupted, nil
}
