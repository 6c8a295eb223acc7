// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"syscall"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/nlconn"
)

// Netlink lists RDMA devices through the kernel's RDMA netlink family. It opens a socket for each call, in the network
// namespace of the calling thread.
type Netlink struct{}

// RDMADevices lists the RDMA devices of the network namespace. A kernel without RDMA has none, and that is not an error. The
// call ends early, with the context's error, when ctx ends.
//
// The error may be ErrPermission, ErrMalformed, ErrDumpInterrupted if the list changed during each of three attempts, or
// ErrNotSupported on an operating system other than Linux.
func (Netlink) RDMADevices(ctx context.Context) ([]RDMADevice, error) {
	conn, err := nlconn.Dial(nlconn.RDMA)
	if errors.Is(err, syscall.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, nlconn.Error(opDevices, "", err, nil)
	}
	defer conn.Close()
	return rdmaDevices(ctx, conn)
}

const opDevices = "listing RDMA devices by netlink"

// rdmaDevices leaves out a device that is removed between the request for the devices and the request for its ports.
func rdmaDevices(ctx context.Context, conn *nlconn.Conn) ([]RDMADevice, error) {
	devices, err := dump(ctx, conn, nldevGet, nil, parseDevice)
	if err != nil {
		return nil, nlconn.Error(opDevices, "", err, nil)
	}
	var out []RDMADevice
	for _, d := range devices {
		ports, err := rdmaPorts(ctx, conn, d.index)
		if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL) {
			continue
		}
		if err != nil {
			return nil, nlconn.Error("listing ports of", d.Name, err, nil)
		}
		d.Ports = ports
		out = append(out, d.RDMADevice)
	}
	return out, nil
}

// rdmaPorts lists the ports of the RDMA device with an index.
func rdmaPorts(ctx context.Context, conn *nlconn.Conn, index uint32) ([]RDMAPort, error) {
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(nldevAttrDevIndex, index)
	data, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	all, err := dump(ctx, conn, nldevPortGet, data, parsePort)
	var out []RDMAPort
	for _, p := range all {
		if p.Number > 0 {
			out = append(out, p)
		}
	}
	return out, err
}

// dump requests a list and decodes it. It tries again when the list changes while it is read.
func dump[T any](
	ctx context.Context, conn *nlconn.Conn, command netlink.HeaderType, data []byte, parse func([]byte) (T, error),
) ([]T, error) {
	request := netlink.Message{
		Header: netlink.Header{Type: nldev | command, Flags: netlink.Request | netlink.Dump},
		Data:   data,
	}
	for range nlconn.DumpTries {
		var out []T
		var err error
		for m, merr := range conn.Stream(ctx, request) {
			var v T
			if err = merr; err == nil {
				v, err = parse(m.Data)
			}
			if err != nil {
				break
			}
			out = append(out, v)
		}
		if !errors.Is(err, ErrDumpInterrupted) {
			return out, err
		}
	}
	return nil, ErrDumpInterrupted
}
