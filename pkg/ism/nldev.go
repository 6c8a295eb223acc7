// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"fmt"
	"strconv"

	"github.com/mdlayher/netlink"
)

// From <rdma/rdma_netlink.h>.
const (
	nldev = 5 << 10 // RDMA_NL_NLDEV

	nldevGet     = 1 // RDMA_NLDEV_CMD_GET
	nldevPortGet = 5 // RDMA_NLDEV_CMD_PORT_GET

	nldevAttrDevIndex  = 1
	nldevAttrDevName   = 2
	nldevAttrPortIndex = 3
	nldevAttrFwVersion = 5
	nldevAttrNodeGUID  = 6
	nldevAttrPortState = 12
	nldevAttrNdevName  = 51
)

// nldevDevice is an RDMA device without its ports, and the index by which the kernel knows it.
type nldevDevice struct {
	RDMADevice
	index uint32
}

// parseDevice decodes a device.
func parseDevice(b []byte) (nldevDevice, error) {
	var d nldevDevice
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return d, err
	}
	for ad.Next() {
		switch ad.Type() {
		case nldevAttrDevIndex:
			d.index = ad.Uint32()
		case nldevAttrDevName:
			d.Name = ad.String()
		case nldevAttrFwVersion:
			d.Firmware = ad.String()
		case nldevAttrNodeGUID:
			d.NodeGUID = sysfsGUID(ad.Uint64())
		}
	}
	return d, ad.Err()
}

// sysfsGUID returns a GUID as sysfs shows it.
func sysfsGUID(guid uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", guid>>48, guid>>32&0xffff, guid>>16&0xffff, guid&0xffff)
}

// parsePort decodes a port. Its number is 0 if the kernel has sent none, or one that no port has.
func parsePort(b []byte) (RDMAPort, error) {
	var p RDMAPort
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return p, err
	}
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
