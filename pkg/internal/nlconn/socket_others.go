// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package nlconn

import (
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Socket is the socket below a netlink.Conn. Only Linux has one.
type Socket struct{ netlink.Socket }

// Interrupted is never called: there is no Socket.
func (s *Socket) Interrupted() bool { return false }

func open(int) (*Socket, uint32, error) { return nil, 0, smcerr.ErrNotSupported }
