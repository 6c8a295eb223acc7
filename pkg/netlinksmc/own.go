// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"
)

var cmdDeleteLinkGroup = command{CmdLGRDelete, "SMCKIT_CMD_LGR_DELETE", "delete link group", ""}

// DeleteLinkGroupR ends an SMC-R link group by its number: its connections are aborted, the applications of both hosts get an
// error, and the peer is asked to end its side. The initial network namespace may end any group; another one those that belong
// to it, which are those over RDMA devices that it owns. It needs CAP_NET_ADMIN in the user namespace that owns the network
// namespace, and takes up to two seconds. The error may be ErrLinkGroupNotFound, or ErrNotSupported from a module that is not
// smckit's.
func (c *Client) DeleteLinkGroupR(ctx context.Context, id uint32) error {
	return c.deleteLinkGroup(ctx, id, techSMCR)
}

// DeleteLinkGroupD does the same to an SMC-D link group. Those of the loopback device belong to the network namespace that
// their connections are in.
func (c *Client) DeleteLinkGroupD(ctx context.Context, id uint32) error {
	return c.deleteLinkGroup(ctx, id, techSMCD)
}

func (c *Client) deleteLinkGroup(ctx context.Context, id uint32, tech uint8) error {
	op := fmt.Sprintf("%s %08x", cmdDeleteLinkGroup.op, id)
	family, err := c.lookUp(ctx, ownFamily, ownVersion)
	if errors.Is(err, ErrNoModule) {
		return &Error{
			Op: op, Kind: ErrNotSupported, Err: err,
			Remedy: "the loaded SMC module cannot do that: it takes smckit's own module, as the package smckit-dkms has it",
		}
	}
	if err != nil {
		return err
	}
	data := binary.NativeEndian.AppendUint32(appendHeader(nil, AttrLGRID, 4), id)
	data = append(appendHeader(data, AttrLGRTech, 1), tech, 0, 0, 0)
	err = c.conn.Set(ctx, family, cmdDeleteLinkGroup.number, data)
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Err: err, Kind: kind(err)}
	if errors.Is(err, syscall.ENOENT) {
		e.Kind = ErrLinkGroupNotFound
	}
	switch e.Kind {
	case ErrLinkGroupNotFound:
		e.Remedy = "'smcd linkgroup' lists those of this network namespace"
		if tech == techSMCR {
			// A namespace lists the groups that its connections share, and may not end them.
			e.Remedy = "'smcr linkgroup' lists them; one that network namespaces share is deleted in that of the RDMA device"
		}
	case ErrPermission:
		e.Remedy = "run as root, that is with CAP_NET_ADMIN in the user namespace that owns the network namespace"
	}
	return e
}
