// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// GID is an address of a port.
type GID struct {
	// Index is its index in the port's table.
	Index int
	// Addr is an IPv6 address, or one of IPv4 that is mapped into IPv6.
	Addr netip.Addr
	// RoCEv2 is false for RoCEv1 and InfiniBand.
	RoCEv2 bool
	// NetDev is the interface that the GID belongs to: that of the port, or a VLAN on top of it; empty if there is none.
	NetDev string
}

// noGID is the content of sysfs for an unused entry of the table.
const noGID = "0000:0000:0000:0000:0000:0000:0000:0000"

// gids returns the GIDs of the port in dir that are in use, in the order of the table.
func gids(dir string) []GID {
	var out []GID
	buf := make([]byte, 64)
	for _, name := range list(filepath.Join(dir, "gids")) {
		// Most entries of a large table are unused.
		text := strings.TrimSpace(string(readSmall(filepath.Join(dir, "gids", name), buf)))
		if text == noGID {
			continue
		}
		addr, err := netip.ParseAddr(text)
		index, ierr := strconv.Atoi(name)
		if err != nil || ierr != nil || addr.IsUnspecified() {
			continue
		}
		out = append(out, GID{
			Index: index, Addr: addr,
			RoCEv2: strings.Contains(readText(filepath.Join(dir, "gid_attrs/types", name)), "v2"),
			NetDev: readText(filepath.Join(dir, "gid_attrs/ndevs", name)),
		})
	}
	return out
}
