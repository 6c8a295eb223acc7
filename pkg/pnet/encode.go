// SPDX-License-Identifier: Apache-2.0

package pnet

import "github.com/mdlayher/netlink"

// encodeID returns the attributes of a request about one PNET ID.
func encodeID(id ID) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(AttrPNETIDName, string(id))
	return ae.Encode()
}

// encodeEntry returns the attributes of a request to add e.
func encodeEntry(e Entry) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(AttrPNETIDName, string(e.ID))
	if e.IsEth() {
		ae.String(AttrPNETIDEthname, e.Eth)
	} else {
		ae.String(AttrPNETIDIbname, e.IB)
		ae.Uint8(AttrPNETIDIbport, e.Port)
	}
	return ae.Encode()
}
