// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"errors"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// absent is what the kernel sends as the name of the interface in an entry for an RDMA device, and vice versa.
const absent = "n/a"

// parseFamilyID decodes the answer to the request that looks the family up.
func parseFamilyID(replies []genetlink.Message) (uint16, error) {
	var id uint16
	for _, m := range replies {
		ad, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return 0, err
		}
		for ad.Next() {
			if ad.Type() == familyAttrID {
				id = ad.Uint16()
			}
		}
		if err := ad.Err(); err != nil {
			return 0, err
		}
	}
	if id == 0 {
		return 0, errors.New("answer without the number of the family")
	}
	return id, nil
}

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
	var port uint8
	for ad.Next() {
		switch ad.Type() {
		case attrName:
			id = ad.String()
		case attrEthName:
			eth = ad.String()
		case attrIBName:
			ib = ad.String()
		case attrIBPort:
			port = ad.Uint8()
		}
	}
	if err := ad.Err(); err != nil {
		return nil, err
	}
	if id == "" {
		return nil, errors.New("entry without a PNET ID")
	}
	var t Table
	if eth != "" && eth != absent {
		t = append(t, Entry{ID: ID(id), Eth: eth})
	}
	if ib != "" && ib != absent {
		t = append(t, Entry{ID: ID(id), IB: ib, Port: port})
	}
	if t == nil {
		return nil, errors.New("entry without a device for PNET ID " + id)
	}
	return t, nil
}
