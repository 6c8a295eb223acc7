// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"

	"github.com/mdlayher/genetlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Client is a client of the generic netlink family SMC_GEN_NETLINK. It reports and changes the state of the network namespace
// in which New was called, unless the comment of a method differs.
//
// A Client is safe for concurrent use; requests wait for one another.
//
// Each request ends early, with the context's error, when its context is cancelled or its deadline passes. There is no
// other time limit. After that the Client can still be used.
//
// Every error is an *smcerr.Error. In addition to the errors that a method names, any method may return
//   - ErrNoModule, which is also os.ErrNotExist: no SMC module is loaded (any more);
//   - os.ErrPermission: the caller may not do this;
//   - ErrNotSupported: the SMC module is too old to know the request;
//   - ErrMalformed: the answer could not be decoded.
//
// Names that come from outside - host names, EIDs, device names - are passed on byte for byte and need not be UTF-8.
type Client struct {
	conn   *nlconn.Generic
	family nlconn.Family // SMC_GEN_NETLINK
}

// New is NewContext with a context that does not end.
func New() (*Client, error) { return NewContext(context.Background()) }

// NewContext opens a generic netlink socket in the network namespace of the calling thread and looks the SMC family up,
// which makes the kernel load the module smc if it can. The caller closes the Client. ctx limits the look-up only: it may
// end once NewContext has returned.
func NewContext(ctx context.Context) (*Client, error) {
	conn, err := nlconn.DialGeneric()
	if err != nil {
		return nil, openError("open a generic netlink socket", err)
	}
	return newClient(ctx, conn)
}

// NewFromConn returns a Client on a connection that is open already, for tests with package genltest. The Client owns
// the connection from then on, and closes it also when NewFromConn fails.
func NewFromConn(conn *genetlink.Conn) (*Client, error) {
	return newClient(context.Background(), nlconn.NewGeneric(conn, nil))
}

// Close closes the socket. A request that waits for an answer fails.
func (c *Client) Close() error { return c.conn.Close() }

// SystemInfo returns the description of the SMC module of this host.
func (c *Client) SystemInfo(ctx context.Context) (*SystemInfo, error) {
	return get(ctx, c, cmdSysInfo, parseSystemInfo)
}

// LinkGroupsR returns the SMC-R link groups without their links. If the list changes while it is read, the method tries again a
// few times, and then returns the last list together with ErrDumpInterrupted; this is the same for all lists.
func (c *Client) LinkGroupsR(ctx context.Context) ([]LinkGroupR, error) {
	return get(ctx, c, cmdLinkGroupsR, parseLinkGroupsR)
}

// LinkGroupsRWithLinks returns the SMC-R link groups, each with its links. It may return ErrDumpInterrupted.
func (c *Client) LinkGroupsRWithLinks(ctx context.Context) ([]LinkGroupR, error) {
	return get(ctx, c, cmdLinksR, parseLinkGroupsR)
}

// LinkGroupsD returns the SMC-D link groups. It may return ErrDumpInterrupted.
func (c *Client) LinkGroupsD(ctx context.Context) ([]LinkGroupD, error) {
	return get(ctx, c, cmdLinkGroupsD, parseLinkGroupsD)
}

// DevicesR returns the RoCE devices of the host. It may return ErrDumpInterrupted.
func (c *Client) DevicesR(ctx context.Context) ([]Device, error) {
	return get(ctx, c, cmdDevicesR, parseDevicesR)
}

// DevicesD returns the ISM devices of the host. It may return ErrDumpInterrupted.
func (c *Client) DevicesD(ctx context.Context) ([]Device, error) {
	return get(ctx, c, cmdDevicesD, parseDevicesD)
}

// Stats returns the counters of the network namespace. Linux 5.14.
func (c *Client) Stats(ctx context.Context) (*Stats, error) {
	return get(ctx, c, cmdStats, parseStats)
}

// FallbackStats returns how often connections of the network namespace have fallen back to TCP, and why. Linux 5.14.
// It may return ErrDumpInterrupted together with the result.
func (c *Client) FallbackStats(ctx context.Context) (*FallbackStats, error) {
	return get(ctx, c, cmdFallbackStats, parseFallbackStats)
}

// UEIDs returns the user EIDs of the host without their padding; they do not depend on the network namespace. Linux
// 5.16. It may return ErrDumpInterrupted.
func (c *Client) UEIDs(ctx context.Context) ([]string, error) {
	return get(ctx, c, cmdUEIDs, parseUEIDs)
}

// AddUEID adds a user EID to those of the host, and needs CAP_NET_ADMIN. The kernel keeps no more than four, and
// forgets them when the module is unloaded. The error may be ErrInvalidEID, ErrUEIDExists (also os.ErrExist) or
// ErrUEIDTableFull.
func (c *Client) AddUEID(ctx context.Context, eid string) error {
	if err := CheckEID(eid); err != nil {
		return err
	}
	return c.set(ctx, cmdAddUEID, eid, encodeEID(eid))
}

// RemoveUEID removes a user EID, and needs CAP_NET_ADMIN. The error may be ErrInvalidEID or ErrUEIDNotFound. On s390 it is
// ErrSEIDActivated when the EID was removed and was the last one: a success with a side effect that should be reported to the
// administrator.
func (c *Client) RemoveUEID(ctx context.Context, eid string) error {
	if err := CheckEID(eid); err != nil {
		return err
	}
	return c.set(ctx, cmdRemoveUEID, eid, encodeEID(eid))
}

// FlushUEIDs removes all user EIDs, and needs CAP_NET_ADMIN. On s390 this also enables the system EID.
func (c *Client) FlushUEIDs(ctx context.Context) error {
	return c.set(ctx, cmdFlushUEIDs, "", nil)
}

// SEID returns the system EID, or nil without an error if the host has none. Linux 5.16.
func (c *Client) SEID(ctx context.Context) (*SEID, error) {
	return get(ctx, c, cmdSEID, parseSEID)
}

// SetSEID enables or disables the system EID of the host, and needs CAP_NET_ADMIN. The error may be ErrNoSEID, or
// ErrNoUEID when it cannot be disabled because there is no other EID. Linux 5.16.
func (c *Client) SetSEID(ctx context.Context, enabled bool) error {
	cmd := cmdDisableSEID
	if enabled {
		cmd = cmdEnableSEID
	}
	err := c.set(ctx, cmd, "", nil)
	// Off s390 the kernel refuses with the errno that also means an unknown command.
	if errors.Is(err, ErrNotSupported) {
		if seid, serr := c.SEID(ctx); serr == nil && seid == nil {
			return &smcerr.Error{Op: cmd.op, Kind: ErrNoSEID, Remedy: "only hosts with an ISM device of version 2 have one", Err: err}
		}
	}
	return err
}

// HandshakeLimitation reports whether the network namespace falls back to TCP while too many SMC handshakes are in progress.
// Linux 5.18.
func (c *Client) HandshakeLimitation(ctx context.Context) (bool, error) {
	return get(ctx, c, cmdHSLimitation, parseHandshakeLimitation)
}

// SetHandshakeLimitation enables or disables the handshake limitation of the network namespace, and needs
// CAP_NET_ADMIN. Linux 5.18.
func (c *Client) SetHandshakeLimitation(ctx context.Context, enabled bool) error {
	if enabled {
		return c.set(ctx, cmdEnableHSLimit, "", nil)
	}
	return c.set(ctx, cmdDisableHSLimit, "", nil)
}
