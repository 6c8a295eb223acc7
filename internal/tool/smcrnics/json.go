// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"fmt"

	"github.com/smckit/smckit/pkg/ism"
)

// schema is the number of the JSON documents here.
const schema = 1

// document is the listing as JSON. IDs that are written in hexadecimal everywhere are strings without 0x.
type document struct {
	Schema int `json:"schema"`
	// whether the host has the PCI identifiers of IBM Z
	ZPCI    bool     `json:"zpci"`
	Devices []device `json:"devices"`
}

type device struct {
	// `roce`, `rdma` (an RDMA device that SMC-R cannot use: iWARP, InfiniBand), `ism`, `other`, `off` (slot switched off)
	Kind string `json:"kind"`
	// RDMA device, or dibs device of an ISM
	Name string `json:"name,omitzero"`
	// adapter, or driver, or vendor:device; `fabric` for an ivshmem device that smckit's module uses, `ivshmem` for others; on
	// IBM Z see `zpci.feature`
	Type string `json:"type,omitzero"`
	// as sysfs and netlink have it
	Driver string `json:"driver,omitzero"`
	// the same
	Firmware string `json:"firmware,omitzero"`
	// `CA` or `RNIC`
	NodeType string `json:"node_type,omitzero"`
	NodeGUID string `json:"node_guid,omitzero"`
	// rxe, siw, dibs loopback
	Software bool `json:"software"`
	// of an ISM device, or of the first port of a PCI function; null: not set
	PNETID *pnetIDOf `json:"pnet_id"`
	PCI    *pci      `json:"pci,omitzero"`
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

// pnetIDOf is a PNET ID and its source: hardware, or table.
type pnetIDOf struct {
	ID string `json:"id"`
	// `hardware` or `table`
	Source string `json:"source"`
}

type pci struct {
	Address   string `json:"address"`
	Vendor    string `json:"vendor"`
	Device    string `json:"device"`
	SubVendor string `json:"subsystem_vendor"`
	SubDevice string `json:"subsystem_device"`
	// 6 digits
	Class string `json:"class"`
	// address, for virtual functions
	PhysicalFunction string `json:"physical_function,omitzero"`
}

type zpci struct {
	// 8 digits
	FID       string `json:"fid"`
	UID       string `json:"uid,omitzero"`
	UIDUnique *bool  `json:"uid_is_unique,omitzero"`
	PCHID     string `json:"pchid,omitzero"`
	PFT       string `json:"pft,omitzero"`
	VFN       string `json:"vfn,omitzero"`
	// 0: none or all
	Port *uint8 `json:"port,omitzero"`
	// `RoCE_Express`, `RoCE_Express2`, `RoCE_Express3`, `Network_Express` or `ISM`
	Feature string `json:"feature,omitzero"`
}

type slot struct {
	Name    string `json:"name"`
	Address string `json:"address,omitzero"`
	// `on`, `off` or `unknown`
	Power string `json:"power"`
	// whether -e and -d work
	Switch bool `json:"switch"`
}

type ismOf struct {
	GID string `json:"gid,omitzero"`
	// dibs class, Linux 6.18
	FabricID string `json:"fabric_id,omitzero"`
}

type ivshmem struct {
	SizeBytes uint64 `json:"size_bytes,omitzero"`
	// number of interrupts that other guests can cause; only root can read it
	Vectors *int `json:"vectors,omitzero"`
	// whether the memory begins as a fabric of `smc_ismd` does; only root can read it, while the device has no driver
	Fabric *bool `json:"fabric,omitzero"`
}

type port struct {
	Port      uint8     `json:"port"`
	State     string    `json:"state,omitzero"`
	PhysState string    `json:"phys_state,omitzero"`
	LinkLayer string    `json:"link_layer,omitzero"`
	Rate      string    `json:"rate,omitzero"`
	NetDev    string    `json:"netdev,omitzero"`
	GIDs      int       `json:"gids"`
	GIDsV2    int       `json:"gids_rocev2"`
	PNETID    *pnetIDOf `json:"pnet_id"`
}

type netDev struct {
	Name    string    `json:"name"`
	DevPort uint16    `json:"dev_port"`
	State   string    `json:"oper_state,omitzero"`
	PNETID  *pnetIDOf `json:"pnet_id"`
}

func newDocument(inv *ism.Inventory, devices []ism.Device) document {
	doc := document{Schema: schema, ZPCI: inv.ZPCI, Devices: []device{}}
	for _, d := range devices {
		doc.Devices = append(doc.Devices, newDevice(&d))
	}
	return doc
}

func newDevice(d *ism.Device) device {
	out := device{
		Kind: d.Kind.String(), Name: d.Name, Type: d.Model, Driver: d.Driver, Firmware: d.Firmware,
		NodeType: d.NodeType, NodeGUID: d.NodeGUID, Software: d.Software, PNETID: newPNETID(d.PNETID),
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
			GIDs: p.GIDs, GIDsV2: p.GIDsV2, PNETID: newPNETID(p.PNETID),
		})
	}
	for _, n := range d.NetDevs {
		out.NetDevs = append(out.NetDevs, netDev{Name: n.Name, DevPort: n.Port, State: n.State, PNETID: newPNETID(n.PNETID)})
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

func newPNETID(id ism.PNETID) *pnetIDOf {
	if id.Source == ism.SourceNone {
		return nil
	}
	return &pnetIDOf{ID: id.ID, Source: id.Source.String()}
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
