// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"errors"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// Values of the kernel for the device that an entry does not have: the entry of an RDMA device has no interface name, and the
// entry of an interface has no name of an RDMA device, and the port noPort.
const (
	absent = "n/a"
	noPort = 255
)

// parseTable decodes the answer to a request for the table.
func parseTable(replies []genetlink.Message) (Table, error) {
	var t Table
	for _, m := range replies {
		entries, err := parseRow(m.Data)
		if err != nil {
			return nil, err
		}
		t = append(t, entries...)
	}
	return t, nil
}

// parseRow decodes one message of the table. It is one entry, except with kernels before Linux 5.1, whose rows may have
// an interface and an RDMA device. Attributes that are not known are skipped.
func parseRow(b []byte) (Table, error) {
	ad, err := netlink.NewAttributeDecoder(b)
	if err != nil {
		return nil, err
	}
	var id, eth, ib string
	var hasEth, hasIB bool
	port := uint8(noPort)
	for ad.Next() {
		switch ad.Type() {
		case AttrPNETIDName:
			id = ad.String()
		case AttrPNETIDEthname:
			eth, hasEth = ad.String(), true
		case AttrPNETIDIbname:
			ib, hasIB = ad.String(), true
		case AttrPNETIDIbport:
			port = ad.Uint8()
		}
	}
	if err := ad.Err(); err != nil {
		return nil, err
	}
	// The names do not show which half is present, because a device may have the name "n/a".
	hasIB = hasIB && port != noPort
	hasEth = hasEth && (!hasIB || eth != absent)
	switch {
	case id == "":
		return nil, errors.New("entry without a PNET ID")
	case !hasEth && !hasIB:
		return nil, errors.New("entry without a device")
	}
	var t Table
	if hasEth {
		t = append(t, Entry{ID: ID(id), Eth: eth})
	}
	if hasIB {
		t = append(t, Entry{ID: ID(id), IB: ib, Port: port})
	}
	return t, nil
}
