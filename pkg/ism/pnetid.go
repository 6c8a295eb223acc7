// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"slices"

	"github.com/smckit/smckit/pkg/pnet"
)

// setPNETIDs gives d, its ports and its interfaces their PNET IDs. The ID of the hardware takes precedence, as in the kernel.
func (fs sysfs) setPNETIDs(d *Device, table pnet.Table) {
	var hardware []string
	if d.PCI != nil {
		hardware = pnet.DecodeUtilString(readFile(fs.path("bus/pci/devices", d.PCI.Address, "util_string")))
	}
	for i := range d.Ports {
		p := &d.Ports[i]
		p.PNETID = pick(hardware, int(p.Number)-1, d.inTable(table, p.Number))
	}
	for i := range d.NetDevs {
		n := &d.NetDevs[i]
		byName := func(e pnet.Entry) bool { return e.Eth != "" && e.Eth == n.Name }
		soft := find(table, byName)
		if soft == "" {
			soft = d.inTable(table, uint8(min(n.Port, 254))+1)
		}
		n.PNETID = pick(hardware, int(n.Port), soft)
	}
	switch {
	case d.Kind == KindISM:
		d.PNETID = pick(hardware, 0, d.inTable(table, anyPort))
	case d.PCI != nil:
		d.PNETID = pick(hardware, 0, d.inTable(table, pnet.DefaultPort))
	}
}

// pick returns the ID that the hardware has for a port (counted from 0), or else the one in the table.
func pick(hardware []string, port int, soft string) PNETID {
	switch {
	case port < len(hardware) && hardware[port] != "":
		return PNETID{ID: hardware[port], Source: SourceHardware}
	case soft != "":
		return PNETID{ID: soft, Source: SourceTable}
	}
	return PNETID{}
}

// anyPort matches every entry: an ISM device has no ports, and the kernel ignores the port of its entry.
const anyPort = 0

// inTable returns the ID of the device's port in the PNET table. An entry names a device by its name or its address.
func (d *Device) inTable(table pnet.Table, port uint8) string {
	return find(table, func(e pnet.Entry) bool {
		return e.IB != "" && (port == anyPort || e.Port == port) &&
			(e.IB == d.Name || d.PCI != nil && e.IB == d.PCI.Address)
	})
}

func find(table pnet.Table, match func(pnet.Entry) bool) string {
	if i := slices.IndexFunc(table, match); i >= 0 {
		return string(table[i].ID)
	}
	return ""
}
