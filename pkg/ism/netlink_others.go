// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ism

import (
	"context"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Netlink lists RDMA devices through the kernel's RDMA netlink family, which only Linux has.
type Netlink struct{}

// RDMADevices returns smcerr.ErrNotSupported.
func (Netlink) RDMADevices(context.Context) ([]RDMADevice, error) { return nil, smcerr.ErrNotSupported }
