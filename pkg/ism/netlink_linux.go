// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	mdnetlink "github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// dumpTries is how often the list of RDMA devices is read until it does not change meanwhile.
const dumpTries = 3

// Netlink lists RDMA devices through the kernel's RDMA netlink family. It opens a socket for each call, in the network
// namespace of the calling thread.
type Netlink struct{}

// RDMADevices lists the RDMA devices. A kernel without RDMA has none, and that is not an error.
func (Netlink) RDMADevices(ctx context.Context) ([]RDMADevice, error) {
	const op = "listing RDMA devices by netlink"
	h, err := netlink.NewHandle(unix.NETLINK_RDMA)
	if errors.Is(err, syscall.EPROTONOSUPPORT) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	defer h.Close()
	for range dumpTries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		links, err := h.RdmaLinkList()
		switch {
		case errors.Is(err, netlink.ErrDumpInterrupted):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		return withPorts(links)
	}
	return nil, fmt.Errorf("%s: %w each time, try again", op, smcerr.ErrDumpInterrupted)
}

// withPorts asks for the ports of each device, which the library does not do.
func withPorts(links []*netlink.RdmaLink) ([]RDMADevice, error) {
	if len(links) == 0 {
		return nil, nil
	}
	conn, err := mdnetlink.Dial(unix.NETLINK_RDMA, nil)
	if err != nil {
		return nil, fmt.Errorf("listing ports of RDMA devices by netlink: %w", err)
	}
	defer conn.Close()
	return rdmaDevices(conn, links)
}

// rdmaDevices leaves out a device that has gone since links was made.
func rdmaDevices(conn *mdnetlink.Conn, links []*netlink.RdmaLink) ([]RDMADevice, error) {
	var out []RDMADevice
	for _, l := range links {
		ports, err := rdmaPorts(conn, l.Attrs.Index)
		if errors.Is(err, syscall.ENODEV) || errors.Is(err, syscall.EINVAL) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("listing ports of %s by netlink: %w", l.Attrs.Name, err)
		}
		out = append(out, RDMADevice{
			Name:     l.Attrs.Name,
			Firmware: l.Attrs.FirmwareVersion,
			NodeGUID: sysfsGUID(l.Attrs.NodeGuid),
			Ports:    ports,
		})
	}
	return out, nil
}

// sysfsGUID turns a GUID as the netlink library writes it, least significant byte first ("01:ee:…"), into what sysfs
// shows ("…ee01").
func sysfsGUID(s string) string {
	b := strings.Split(s, ":")
	if len(b) != 8 {
		return ""
	}
	return b[7] + b[6] + ":" + b[5] + b[4] + ":" + b[3] + b[2] + ":" + b[1] + b[0]
}
