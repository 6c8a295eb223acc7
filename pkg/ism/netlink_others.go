// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package ism

import (
	"context"
	"errors"
)

// Netlink lists RDMA devices through the kernel's RDMA netlink family, which only Linux has.
type Netlink struct{}

// RDMADevices returns errors.ErrUnsupported.
func (Netlink) RDMADevices(context.Context) ([]RDMADevice, error) { return nil, errors.ErrUnsupported }
