// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"fmt"

	"github.com/smckit/smckit/pkg/netlinksmc"
)

type devicesJSON struct {
	Schema     int          `json:"schema"`
	Technology string       `json:"technology"`
	Devices    []deviceJSON `json:"devices"`
}

type deviceJSON struct {
	// `smcr device`
	IBDev    string `json:"ibdev,omitempty"`
	PCIID    string `json:"pci_id"`
	Type     string `json:"type"`
	Vendor   string `json:"vendor"`
	Device   string `json:"device"`
	FID      string `json:"fid"`
	PCHID    string `json:"pchid"`
	Critical bool   `json:"critical"`
	// number of link groups; `smcd device`
	LinkGroups *uint32    `json:"linkgroups,omitempty"`
	Ports      []portJSON `json:"ports"`
}

type portJSON struct {
	Number uint8                `json:"number"`
	State  netlinksmc.PortState `json:"state"`
	// `smcr device`
	NetDev string `json:"netdev,omitempty"`
	// `smcr device`
	Ifindex uint32 `json:"ifindex,omitempty"`
	// `smcr device`
	Links        *uint32 `json:"links,omitempty"`
	PNETID       string  `json:"pnet_id"`
	PNETIDByUser bool    `json:"pnet_id_by_user"`
}

func newDevicesJSON(t tech, devices []netlinksmc.Device, netdev func(uint32) string) devicesJSON {
	doc := devicesJSON{Schema: 1, Technology: t.name(), Devices: make([]deviceJSON, 0, len(devices))}
	for _, d := range devices {
		j := deviceJSON{
			IBDev: d.IBName, PCIID: d.PCIID, Type: typeR(d),
			Vendor: fmt.Sprintf("0x%04x", d.Vendor), Device: fmt.Sprintf("0x%04x", d.Device),
			FID: hex4(d.FID), PCHID: hex4(uint32(d.CHID)), Critical: d.Critical,
			Ports: make([]portJSON, 0, len(d.Ports)),
		}
		if t == techD {
			j.Type, j.LinkGroups = typeD(d), &d.UseCount
		}
		for _, p := range d.Ports {
			pj := portJSON{Number: p.Number, State: p.State, PNETID: p.PNETID, PNETIDByUser: p.PNETIDByUser}
			if t == techR {
				pj.NetDev, pj.Ifindex, pj.Links = netdev(p.NetIfindex), p.NetIfindex, &p.Links
			}
			j.Ports = append(j.Ports, pj)
		}
		doc.Devices = append(doc.Devices, j)
	}
	return doc
}
