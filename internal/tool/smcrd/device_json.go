// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

type devicesJSON struct {
	Schema    int          `json:"schema"`
	Transport string       `json:"transport" schema1:"technology"`
	Devices   []deviceJSON `json:"devices"`
}

type deviceJSON struct {
	// `smcr device`
	IBDev    string `json:"device,omitempty" schema1:"ibdev"`
	PCIID    string `json:"pci_address" schema1:"pci_id"`
	Type     string `json:"device_type" schema1:"type"`
	Vendor   string `json:"vendor_id" schema1:"vendor,0x"`
	Device   string `json:"device_id" schema1:"device,0x"`
	FID      string `json:"fid" schema1:",short"`
	PCHID    string `json:"pchid"`
	Critical bool   `json:"critical"`
	// `smcd device`
	LinkGroups *uint32    `json:"linkgroup_count,omitempty" schema1:"linkgroups"`
	Ports      []portJSON `json:"ports"`
}

type portJSON struct {
	Number uint8  `json:"port" schema1:"number"`
	State  string `json:"state"`
	// `smcr device`
	NetDev string `json:"netdev,omitempty"`
	// `smcr device`
	Ifindex uint32 `json:"ifindex,omitempty"`
	// `smcr device`
	Links  *uint32 `json:"link_count,omitempty" schema1:"links"`
	PNETID string  `json:"pnet_id,omitzero" schema1:",keep"`
	Origin string  `json:"pnet_id_origin,omitzero" schema1:"pnet_id_by_user,keep,by_user"`
}

func newDevicesJSON(t tech, devices []netlinksmc.Device, netdev func(uint32) string) devicesJSON {
	doc := devicesJSON{Schema: jsondoc.Schema, Transport: t.name(), Devices: make([]deviceJSON, 0, len(devices))}
	for _, d := range devices {
		j := deviceJSON{
			IBDev: d.IBName, PCIID: d.PCIID, Type: typeR(d),
			Vendor: hex4(uint32(d.Vendor)), Device: hex4(uint32(d.Device)),
			FID: hex8(d.FID), PCHID: hex4(uint32(d.CHID)), Critical: d.Critical,
			Ports: make([]portJSON, 0, len(d.Ports)),
		}
		if t == techD {
			j.Type, j.LinkGroups = typeD(d), &d.UseCount
		}
		for _, p := range d.Ports {
			pj := portJSON{Number: p.Number, State: p.State.String(), PNETID: p.PNETID, Origin: portOrigin(p)}
			if t == techR {
				pj.NetDev, pj.Ifindex, pj.Links = netdev(p.NetIfindex), p.NetIfindex, &p.Links
			}
			j.Ports = append(j.Ports, pj)
		}
		doc.Devices = append(doc.Devices, j)
	}
	return doc
}

// portOrigin returns where the PNET ID of a port comes from, "" if the port has none.
func portOrigin(p netlinksmc.Port) string {
	switch {
	case p.PNETIDByUser:
		return jsondoc.OriginTable
	case p.PNETID != "":
		return jsondoc.OriginFirmware
	}
	return ""
}
