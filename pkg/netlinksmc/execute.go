// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"time"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// dumpTries is how often a dump is made until it is not interrupted.
const dumpTries = 3

// The parts of generic netlink's own family, the controller, that look a family up.
const (
	controllerID      = 0x10
	controllerVersion = 2
	getFamily         = 3
	familyAttrID      = 1
	familyAttrName    = 2
)

// client carries requests out, one at a time.
type client struct {
	conn   *genetlink.Conn
	family uint16 // SMC_GEN_NETLINK
	busy   lock
	// interrupted, if not nil, says whether the last message of the dump that was just received was marked as
	// interrupted, which the netlink library does not pass on.
	interrupted func() bool
}

// newClient looks the family up on conn. It closes conn if that fails.
func newClient(ctx context.Context, conn *genetlink.Conn) (*client, error) {
	c := &client{conn: conn, busy: newLock()}
	var err error
	if c.family, err = c.lookUp(ctx, familyName); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *client) close() error { return c.conn.Close() }

// lookUp finds the number of a family. The library's function for this panics on answers it does not expect.
func (c *client) lookUp(ctx context.Context, name string) (family uint16, err error) {
	cmd := command{getFamily, "CTRL_CMD_GETFAMILY", "look up the netlink family " + name, "2.6.15"}
	replies, _, err := c.execute(ctx, controllerID, controllerVersion, cmd, netlink.Request,
		appendString(nil, familyAttrName, name))
	if err != nil {
		return 0, requestError(cmd, "", err)
	}
	err = errNoReply
	if len(replies) > 0 {
		err = fields{familyAttrID: required(to("CTRL_ATTR_FAMILY_ID", getU16, &family))}.parse(replies[0].Data)
	}
	if err != nil {
		return 0, &Error{Op: cmd.op, Kind: ErrMalformed, Err: err}
	}
	return family, nil
}

// dump asks for a list. Its error is ErrDumpInterrupted, beside the replies, if the list changed during every try.
func (c *client) dump(ctx context.Context, cmd command) ([]genetlink.Message, error) {
	var replies []genetlink.Message
	for range dumpTries {
		var interrupted bool
		var err error
		replies, interrupted, err = c.execute(ctx, c.family, familyVersion, cmd, netlink.Request|netlink.Dump, nil)
		if err != nil {
			return nil, requestError(cmd, "", err)
		}
		if !interrupted {
			return replies, nil
		}
	}
	return replies, &Error{Op: cmd.op, Kind: ErrDumpInterrupted, Remedy: "try again"}
}

// flagsChange are those of a request for a change.
const flagsChange = netlink.Request | netlink.Acknowledge

// set asks for a change. subject is what is to be changed, for the text of an error.
func (c *client) set(ctx context.Context, cmd command, subject string, data []byte) error {
	_, _, err := c.execute(ctx, c.family, familyVersion, cmd, flagsChange, data)
	return requestError(cmd, subject, err)
}

// execute sends one request and returns its replies, and whether the kernel has marked them as inconsistent. Its errors
// are those of the netlink library, or of the context.
func (c *client) execute(
	ctx context.Context, family uint16, version uint8, cmd command, flags netlink.HeaderFlags, data []byte,
) ([]genetlink.Message, bool, error) {
	if err := c.busy.acquire(ctx); err != nil {
		return nil, false, err
	}
	defer c.busy.release()
	defer interruptOn(ctx, c.conn)()

	request := genetlink.Message{Header: genetlink.Header{Command: cmd.number, Version: version}, Data: data}
	sent, err := c.conn.Send(request, family, flags)
	if err != nil {
		return nil, false, contextError(ctx, err)
	}
	replies, headers, err := c.conn.Receive()
	if err != nil {
		return nil, false, contextError(ctx, err)
	}
	if err := netlink.Validate(sent, headers); err != nil {
		return nil, false, err
	}
	interrupted := c.interrupted != nil && c.interrupted()
	for _, h := range headers {
		interrupted = interrupted || h.Header.Flags&netlink.DumpInterrupted != 0
	}
	return replies, interrupted, nil
}

// get makes a dump and decodes it. An interrupted dump is decoded all the same.
func get[T any](ctx context.Context, c *Client, cmd command, parse func([]genetlink.Message) (T, error)) (T, error) {
	var none T
	replies, err := c.c.dump(ctx, cmd)
	if err != nil && !errors.Is(err, ErrDumpInterrupted) {
		return none, err
	}
	v, perr := parse(replies)
	if perr != nil {
		return none, &Error{Op: cmd.op, Kind: ErrMalformed, Err: perr}
	}
	return v, err
}

// lock is a mutex that one can stop waiting for.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) acquire(ctx context.Context) error {
	// Between a free lock and an ended context, select would choose at random.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case l <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l lock) release() { <-l }

// deadliner is a connection whose reads and writes can be made to fail.
type deadliner interface {
	SetDeadline(t time.Time) error
}

// interruptOn makes what is waiting on conn fail once ctx is done. The returned function ends that and leaves conn
// without a deadline. A connection without deadlines, as tests have, is not interrupted.
func interruptOn(ctx context.Context, conn deadliner) (stop func()) {
	expired := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_ = conn.SetDeadline(time.Unix(1, 0))
		close(expired)
	})
	return func() {
		if !cancel() {
			<-expired
			_ = conn.SetDeadline(time.Time{})
		}
	}
}

// contextError replaces err by why ctx is done, if it is.
func contextError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
