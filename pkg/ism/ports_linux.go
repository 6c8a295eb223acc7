// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"strconv"

	"github.com/mdlayher/netlink"
)

// From <rdma/rdma_netlink.h>.
const (
	nldev = 5 << 10 // RDMA_NL_NLDEV

	nldevPortGet = 5 // RDMA_NLDEV_CMD_PORT_GET

	nldevAttrDevIndex  = 1
	nldevAttrPortIndex = 3
	nldevAttrPortState = 12
	nldevAttrNdevName  = 51
)

// rdmaPorts lists the ports of the RDMA device with an index.
func rdmaPorts(conn *netlink.Conn, index uint32) ([]RDMAPort, error) {
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(nldevAttrDevIndex, index)
	data, err := ae.Encode()
	if err != nil {
		return nil, err
	}
	replies, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: nldev | nldevPortGet, Flags: netlink.Request | netlink.Dump},
		Data:   data,
	})
	if err != nil {
		return nil, err
	}
	var out []RDMAPort
	for _, m := range replies {
		p, err := parsePort(m.Data)
		if err != nil {
			return nil, err
		}
		if p.Number > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

// parsePort decodes a port; its number is 0 if the kernel has sent none, or one that no port has.
func parsePort(b []byte) (RDMAPort, error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return RDMAPort{}, err
	}
	var p RDMAPort
	for ad.Next() {
		switch ad.Type() {
		case nldevAttrPortIndex:
			if n := ad.Uint32(); n <= 255 {
				p.Number = uint8(n)
			}
		case nldevAttrPortState:
			p.State = portState(ad.Uint8())
		case nldevAttrNdevName:
			p.NetDev = ad.String()
		}
	}
	return p, ad.Err()
}

// portState returns the word that sysfs has for a state of enum ib_port_state.
func portState(n uint8) string {
	if words := []string{"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"}; int(n) < len(words) {
		return words[n]
	}
	return "0x" + strconv.FormatUint(uint64(n), 16)
}
