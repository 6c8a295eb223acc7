// SPDX-License-Identifier: Apache-2.0

package pnet

import "github.com/mdlayher/netlink"

// Attributes of the family: the first enum in <linux/smc.h>.
const (
	attrName    = 1
	attrEthName = 2
	attrIBName  = 3
	attrIBPort  = 4
)

// encodeID returns the attributes of a request about one PNET ID.
func encodeID(id ID) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(attrName, string(id))
	return ae.Encode()
}

// encodeEntry returns the attributes of a request to add e.
func encodeEntry(e Entry) ([]byte, error) {
	ae := netlink.NewAttributeEncoder()
	ae.String(attrName, string(e.ID))
	if e.IsEth() {
		ae.String(attrEthName, e.Eth)
	} else {
		ae.String(attrIBName, e.IB)
		ae.Uint8(attrIBPort, e.Port)
	}
	return ae.Encode()
}
