// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// completePorts completes the last element of a list of ports: for local, with the ports of this host's servers, for remote, with those that
// its clients are connected to, for port, with both.
func (c *command) completePorts(condition, typed string) (lists []string) {
	listen, remote := c.ports()
	ports := map[uint64]bool{}
	if condition != "remote" {
		maps.Copy(ports, listen)
	}
	if condition != "local" {
		maps.Copy(ports, remote)
	}
	before := typed[:strings.LastIndexByte(typed, ',')+1]
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		lists = append(lists, before+strconv.FormatUint(port, 10))
	}
	return lists
}

// ports returns the ports where servers of this host listen, and the remote ones of clients, which are connected from other ports.
func (c *command) ports() (listen, remote map[uint64]bool) {
	listen, remote = map[uint64]bool{}, map[uint64]bool{}
	connected := map[[2]uint64]bool{}
	for _, s := range c.sys.sockets() {
		local, peer := uint64(s.ID.SourcePort), uint64(s.ID.DestinationPort)
		switch s.State {
		case netlink.TCP_LISTEN:
			listen[local] = true
		case netlink.TCP_ESTABLISHED:
			connected[[2]uint64{local, peer}] = true
		}
	}
	for ends := range connected {
		if !listen[ends[0]] {
			remote[ends[1]] = true
		}
	}
	return listen, remote
}

// tcpSockets returns the sockets of TCP. Completion goes without those that the kernel does not list.
func tcpSockets() (all []*netlink.Socket) {
	for _, family := range []uint8{unix.AF_INET, unix.AF_INET6} {
		list, _ := netlink.SocketDiagTCP(family)
		all = append(all, list...)
	}
	return all
}

// completeTarget completes a server of this host for explain.
func (c *command) completeTarget(args []string) (targets []string) {
	if len(args) > 0 {
		return nil
	}
	listen, _ := c.ports()
	for _, port := range slices.Sorted(maps.Keys(listen)) {
		targets = append(targets, ":"+strconv.FormatUint(port, 10))
	}
	return targets
}
