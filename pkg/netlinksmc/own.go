// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"fmt"
	"syscall"
)

var (
	cmdDeleteLinkGroup = command{CmdLGRDelete, "SMCKIT_CMD_LGR_DELETE", "delete link group", ""}
	cmdDeleteLink      = command{CmdLinkDelete, "SMCKIT_CMD_LINK_DELETE", "delete link", ""}
)

// DeleteLinkGroupR ends an SMC-R link group by its number: its connections are aborted, the applications of both hosts get an
// error, and the peer is asked to end its side. The initial network namespace may end any group. Another namespace may end only
// groups that belong to it: those over RDMA devices that it owns. It needs CAP_NET_ADMIN in the user namespace that owns the
// network namespace, and takes up to two seconds. The error may be ErrLinkGroupNotFound, or ErrNotSupported from a module that
// is not smckit's.
func (c *Client) DeleteLinkGroupR(ctx context.Context, id uint32) error {
	return c.deleteLinkGroup(ctx, id, techSMCR)
}

// DeleteLinkGroupD does the same to an SMC-D link group. Those of the loopback device belong to the network namespace that
// their connections are in.
func (c *Client) DeleteLinkGroupD(ctx context.Context, id uint32) error {
	return c.deleteLinkGroup(ctx, id, techSMCD)
}

func (c *Client) deleteLinkGroup(ctx context.Context, id uint32, tech uint8) error {
	remedy := "'smcd linkgroup' lists the link groups of this network namespace"
	if tech == techSMCR {
		// A namespace lists the groups that its connections share, and may not end them.
		remedy = "'smcr linkgroup' lists link groups; a shared one can be deleted in the network namespace of the RDMA device"
	}
	data := appendU8(appendU32(nil, AttrLGRID, id), AttrLGRTech, tech)
	return c.setOwn(ctx, cmdDeleteLinkGroup, fmt.Sprintf("%08x", id), data, map[syscall.Errno]meaning{
		syscall.ENOENT: {ErrLinkGroupNotFound, remedy},
	})
}

// DeleteLink deletes a link of an SMC-R link group by the numbers of both, LinkGroupR.ID and Link.ID. The connections of the
// link continue over the other link of the group, and the peer is informed. A server looks for a second link again when a port
// comes up. Network namespace and capability are as for DeleteLinkGroupR. The error may be ErrLinkNotFound, ErrOnlyLink, or
// ErrNotSupported from a module that is not smckit's.
func (c *Client) DeleteLink(ctx context.Context, group uint32, link uint8) error {
	data := appendU8(appendU32(nil, AttrLGRID, group), AttrLGRLinkID, link)
	return c.setOwn(ctx, cmdDeleteLink, fmt.Sprintf("%02x of link group %08x", link, group), data, map[syscall.Errno]meaning{
		syscall.ENOENT: {
			ErrLinkNotFound,
			"'smcr -d link' lists links; one of a shared group can be deleted in the network namespace of the RDMA device",
		},
		syscall.EBUSY: {ErrOnlyLink, fmt.Sprintf("'smcr linkgroup delete %08x' ends the whole group", group)},
	})
}

// meaning is the meaning of an errno as the answer to one request: the error and the remedy.
type meaning struct {
	kind   error
	remedy string
}

// setOwn requests a change of the family smckit. subject names the object to change, for the text of an error.
func (c *Client) setOwn(
	ctx context.Context, cmd command, subject string, data []byte, meanings map[syscall.Errno]meaning,
) error {
	family, err := c.lookUp(ctx, ownFamily, ownVersion)
	missing := errors.Is(err, ErrNoModule)
	if err != nil && !missing {
		return err
	}
	if err == nil {
		if err = c.conn.Set(ctx, family, cmd.number, data); err == nil {
			return nil
		}
	}
	e := plainError(cmd.op, subject, err)
	if missing {
		e.Kind = ErrNotSupported
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	m, special := meanings[errno]
	switch {
	case e.Kind == ErrNotSupported:
		e.Remedy = "the loaded SMC module does not support this: install smckit's module (package smckit-dkms)"
	case special:
		e.Kind, e.Remedy = m.kind, m.remedy
	case e.Kind == ErrPermission:
		e.Remedy = "run as root, that is with CAP_NET_ADMIN in the user namespace that owns the network namespace"
	}
	return e
}
