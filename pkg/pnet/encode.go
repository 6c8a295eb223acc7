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

// The parts of generic netlink's own family, the controller, that look a family up.
const (
	controllerID      = 0x10
	controllerVersion = 2
	getFamily         = 3
	familyAttrID      = 1
	familyAttrName    = 2
)

// encodeFamilyName returns the attributes of the request that looks the family up.
func encodeFamilyName() []byte {
	ae := netlink.NewAttributeEncoder()
	ae.String(familyAttrName, Family)
	// One short string cannot fail to encode.
	b, _ := ae.Encode()
	return b
}

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
