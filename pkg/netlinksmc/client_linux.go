// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// dial opens a generic netlink socket and looks the SMC family up.
func dial(ctx context.Context) (*client, error) {
	s, portID, err := dialSocket(unix.NETLINK_GENERIC)
	if err != nil {
		return nil, openError("open a generic netlink socket", err)
	}
	c, err := newClient(ctx, genetlink.NewConn(netlink.NewConn(s, portID)))
	if err != nil {
		return nil, err
	}
	c.interrupted = s.interrupted
	return c, nil
}

// dialDiag opens a sock_diag socket.
func dialDiag() (*Diag, error) {
	s, portID, err := dialSocket(unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return nil, openError("open a sock_diag socket", err)
	}
	d := newDiag(netlink.NewConn(s, portID))
	d.interrupted = s.interrupted
	return d, nil
}
