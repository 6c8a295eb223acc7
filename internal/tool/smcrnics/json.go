// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"fmt"

	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/pkg/ism"
)

// document is the listing as JSON. IDs that are written in hexadecimal everywhere are strings without 0x.
type document struct {
	Schema  int      `json:"schema"`
	ZPCI    bool     `json:"has_zpci" schema1:"zpci"`
	Devices []device `json:"devices"`
}

type device struct {
	Kind string `json:"kind"`
	// of an RDMA device, or of the dibs device of an ISM
	Name string `json:"device,omitzero" schema1:"name"`
	// on IBM Z see `zpci.feature`
	Type     string `json:"model,omitzero" schema1:"type"`
	Driver   string `json:"driver,omitzero"`
	Firmware string `json:"firmware,omitzero"`
	NodeType string `json:"node_type,omitzero"`
	NodeGUID string `json:"node_guid,omitzero"`
	Software bool   `json:"software"`
	// of an ISM device, or of the first port of a PCI function
	PNETID string `json:"pnet_id,omitzero" schema1:",keep,pnet_object"`
	// the same
	Origin string `json:"pnet_id_origin,omitzero" schema1:"-"`
	PCI    *pci   `json:"pci,omitzero"`
	// on IBM Z
	ZPCI *zpci  `json:"zpci,omitzero"`
	Slot *slot  `json:"slot,omitzero"`
	ISM  *ismOf `json:"ism,omitzero"`
	// of an ivshmem device: memory that guests of a KVM host share
	IVSHMEM *ivshmem `json:"ivshmem,omitzero"`
	// of an RDMA device
	Ports []port `json:"ports"`
	// interfaces of the PCI function
	NetDevs []netDev `json:"netdevs"`
}

type pci struct {
	Address   string `json:"pci_address" schema1:"address"`
	Vendor    string `json:"vendor_id" schema1:"vendor"`
	Device    string `json:"device_id" schema1:"device"`
	SubVendor string `json:"subsystem_vendor_id" schema1:"subsystem_vendor"`
	SubDevice string `json:"subsystem_device_id" schema1:"subsystem_device"`
	Class     string `json:"pci_class" schema1:"class"`
	// of virtual functions
	PhysicalFunction string `json:"physical_function,omitzero"`
}

type zpci struct {
	FID       string `json:"fid"`
	UID       string `json:"zpci_uid,omitzero" schema1:"uid"`
	UIDUnique *bool  `json:"zpci_uid_is_unique,omitzero" schema1:"uid_is_unique"`
	PCHID     string `json:"pchid,omitzero"`
	PFT       string `json:"pft,omitzero"`
	VFN       string `json:"vfn,omitzero"`
	// 0 for none or all
	Port    *uint8 `json:"port,omitzero"`
	Feature string `json:"feature,omitzero"`
}

type slot struct {
	Name    string `json:"slot_name" schema1:"name"`
	Address string `json:"slot_address,omitzero" schema1:"address"`
	Power   string `json:"power"`
	Switch  bool   `json:"switch"`
}

type ismOf struct {
	GID string `json:"dibs_gid,omitzero" schema1:"gid"`
	// dibs class, Linux 6.18
	FabricID string `json:"fabric_id,omitzero"`
}

type ivshmem struct {
	SizeBytes uint64 `json:"size_bytes,omitzero"`
	// only root can read it
	Vectors *int `json:"vectors,omitzero"`
	// only root can read it, while the device has no driver
	Fabric *bool `json:"is_fabric,omitzero" schema1:"fabric"`
}

type port struct {
	Port      uint8  `json:"port"`
	State     string `json:"state,omitzero"`
	PhysState string `json:"phys_state,omitzero"`
	LinkLayer string `json:"link_layer,omitzero"`
	Rate      string `json:"rate,omitzero"`
	NetDev    string `json:"netdev,omitzero"`
	GIDs      int    `json:"gid_count" schema1:"gids"`
	GIDsV2    int    `json:"gid_rocev2_count" schema1:"gids_rocev2"`
	PNETID    string `json:"pnet_id,omitzero" schema1:",keep,pnet_object"`
	Origin    string `json:"pnet_id_origin,omitzero" schema1:"-"`
}

type netDev struct {
	Name    string `json:"netdev" schema1:"name"`
	DevPort uint16 `json:"dev_port"`
	State   string `json:"oper_state,omitzero"`
	PNETID  string `json:"pnet_id,omitzero" schema1:",keep,pnet_object"`
	Origin  string `json:"pnet_id_origin,omitzero" schema1:"-"`
}

func newDocument(inv *ism.Inventory, devices []ism.Device) document {
	doc := document{Schema: jsondoc.Schema, ZPCI: inv.ZPCI, Devices: []device{}}
	for _, d := range devices {
		doc.Devices = append(doc.Devices, newDevice(&d))
	}
	return doc
}

func newDevice(d *ism.Device) device {
	out := device{
		Kind: d.Kind.String(), Name: d.Name, Type: d.Model, Driver: d.Driver, Firmware: d.Firmware,
		NodeType: d.NodeType, NodeGUID: d.NodeGUID, Software: d.Software, PNETID: d.PNETID.ID, Origin: jsondoc.Origin(d.PNETID.Source),
		Ports: []port{}, NetDevs: []netDev{},
	}
	if p := d.PCI; p != nil {
		out.PCI = &pci{
			Address: p.Address, Vendor: hex(&p.Vendor, 4), Device: hex(&p.Device, 4), SubVendor: hex(&p.SubVendor, 4),
			SubDevice: hex(&p.SubDevice, 4), Class: fmt.Sprintf("%06x", p.Class), PhysicalFunction: p.PhysFn,
		}
	}
	if d.ZPCI != nil {
		out.ZPCI = newZPCI(d.ZPCI)
	}
	if s := d.Slot; s != nil {
		out.Slot = &slot{Name: s.Name, Address: s.Address, Power: s.Power.String(), Switch: s.Switch}
	}
	if d.ISM != nil {
		out.ISM = &ismOf{GID: d.ISM.GID, FabricID: known(d.ISM.Fabric, 4)}
	}
	if s := d.IVSHMEM; s != nil {
		out.IVSHMEM = &ivshmem{SizeBytes: s.Size, Vectors: s.Vectors, Fabric: s.Fabric}
	}
	for _, p := range d.Ports {
		out.Ports = append(out.Ports, port{
			Port: p.Number, State: p.State, PhysState: p.PhysState, LinkLayer: p.LinkLayer, Rate: p.Rate, NetDev: p.NetDev,
			GIDs: p.GIDs, GIDsV2: p.GIDsV2, PNETID: p.PNETID.ID, Origin: jsondoc.Origin(p.PNETID.Source),
		})
	}
	for _, n := range d.NetDevs {
		out.NetDevs = append(out.NetDevs, netDev{
			Name: n.Name, DevPort: n.Port, State: n.State, PNETID: n.PNETID.ID, Origin: jsondoc.Origin(n.PNETID.Source),
		})
	}
	return out
}

func newZPCI(z *ism.ZPCI) *zpci {
	out := &zpci{
		FID: fid8(z), UIDUnique: z.UIDUnique, PCHID: known(z.PCHID, 4), PFT: known(z.PFT, 2), VFN: known(z.VFN, 4),
		Port: z.Port, Feature: z.Feature,
	}
	if z.UID != nil {
		out.UID = fmt.Sprintf("%04x", *z.UID)
	}
	return out
}

// fid8 formats a FID as sysfs does.
func fid8(z *ism.ZPCI) string { return fmt.Sprintf("%08x", z.FID) }

// known formats a number in hexadecimal, "" if it is not known.
func known[T uint8 | uint16](n *T, width int) string {
	if n == nil {
		return ""
	}
	return hex(n, width)
}
