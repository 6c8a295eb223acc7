// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// States of TCP in /proc/net/tcp.
const (
	stateEstablished = "01"
	stateListen      = "0A"
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
	for _, name := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile(filepath.Join(c.sys.sockets, name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			f := strings.Fields(line)
			if len(f) < 4 {
				continue
			}
			local, err := portOf(f[1])
			peer, err1 := portOf(f[2])
			switch {
			case err != nil || err1 != nil: // the heading
			case f[3] == stateListen:
				listen[local] = true
			case f[3] == stateEstablished:
				connected[[2]uint64{local, peer}] = true
			}
		}
	}
	for ends := range connected {
		if !listen[ends[0]] {
			remote[ends[1]] = true
		}
	}
	return listen, remote
}

// portOf returns the port behind a hexadecimal address.
func portOf(text string) (uint64, error) {
	return strconv.ParseUint(text[strings.LastIndexByte(text, ':')+1:], 16, 16)
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
