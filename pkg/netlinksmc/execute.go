// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"

	"github.com/mdlayher/genetlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// newClient looks the family up on conn. It closes conn if that fails.
func newClient(ctx context.Context, conn *nlconn.Generic) (*Client, error) {
	c := &Client{conn: conn}
	var err error
	if c.family, err = c.lookUp(ctx, familyName, familyVersion); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return c, nil
}

// lookUp finds the number of a family.
func (c *Client) lookUp(ctx context.Context, name string, version uint8) (nlconn.Family, error) {
	id, err := c.conn.LookUp(ctx, name)
	cmd := command{name: "CTRL_CMD_GETFAMILY", op: "look up the netlink family " + name, since: "2.6.15"}
	return nlconn.Family{ID: id, Version: version}, requestError(cmd, "", err)
}

// set requests a change. subject names the object to change, for the text of an error.
func (c *Client) set(ctx context.Context, cmd command, subject string, data []byte) error {
	return requestError(cmd, subject, c.conn.Set(ctx, c.family, cmd.number, data))
}

// get requests a list and decodes it, also if the list changed while it was read.
func get[T any](ctx context.Context, c *Client, cmd command, parse func([]genetlink.Message) (T, error)) (T, error) {
	var none T
	replies, err := c.conn.Dump(ctx, c.family, cmd.number)
	if err != nil && !errors.Is(err, ErrDumpInterrupted) {
		return none, requestError(cmd, "", err)
	}
	v, perr := parse(replies)
	if perr != nil {
		return none, &smcerr.Error{Op: cmd.op, Kind: ErrMalformed, Err: perr}
	}
	return v, requestError(cmd, "", err)
}
