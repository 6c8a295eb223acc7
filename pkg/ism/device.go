// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"fmt"
	"strconv"
)

// Kind is the use of a device for SMC.
type Kind uint8

// The kinds.
const (
	// KindOther is a PCI function that SMC cannot use.
	KindOther Kind = iota
	// KindRoCE is an adapter for SMC-R: an RDMA device with an Ethernet port, or a PCI function that is known to become
	// one when its RDMA driver is loaded.
	KindRoCE
	// KindRDMA is an RDMA device that SMC-R cannot use: an iWARP device, or one with InfiniBand ports only.
	KindRDMA
	// KindISM is a device for SMC-D. An ivshmem device is one if smckit's module uses it, or could because it has no driver.
	KindISM
	// KindOff is a slot whose PCI function is switched off, so that its kind is unknown.
	KindOff
)

// String returns one lower-case word.
func (k Kind) String() string {
	switch k {
	case KindOther:
		return "other"
	case KindRoCE:
		return "roce"
	case KindRDMA:
		return "rdma"
	case KindISM:
		return "ism"
	case KindOff:
		return "off"
	}
	return "0x" + strconv.FormatUint(uint64(k), 16)
}

// Inventory contains the devices of a host.
type Inventory struct {
	// ZPCI reports whether PCI functions have the identifiers of IBM Z (FID, PCHID and the like).
	ZPCI bool
	// Devices are sorted by FID, PCI address and name, those without these values at the end.
	Devices []Device
	// Problems contains the errors of reading devices. Normal conditions, such as an SMC module that is not loaded, are no
	// problems.
	Problems []error
}

// Device is an RDMA device, an ISM device, another PCI function, or a slot that is switched off. A PCI function with
// several RDMA devices is several Devices.
type Device struct {
	Kind Kind
	// Name is the name of the RDMA device, or of the dibs device of an ISM; empty if there is none.
	Name string
	// Model names the adapter, such as "ConnectX-5" or "rxe"; where it is not known, the driver or vendor:device. Empty
	// if nothing is known. On IBM Z see also ZPCI.Feature.
	Model string
	// Driver is the kernel driver of the PCI function, empty if none is bound.
	Driver string
	// Firmware is the version of the firmware as the RDMA device reports it.
	Firmware string
	// NodeType is the type of the RDMA device: "CA" for RoCE and InfiniBand, "RNIC" for iWARP.
	NodeType string
	// NodeGUID identifies the RDMA device, as sysfs writes it: 4 groups of 4 hexadecimal digits.
	NodeGUID string
	// Software is set for devices without hardware: rxe, siw, and the loopback of dibs.
	Software bool
	// PCI is the PCI function of the device, nil for a device that is not on PCI and for one that is switched off.
	PCI *PCI
	// ZPCI holds the identifiers of IBM Z, nil elsewhere.
	ZPCI *ZPCI
	// Slot is the slot that the PCI function is in, nil if it is in none.
	Slot *Slot
	// Ports are those of the RDMA device, by number.
	Ports []Port
	// NetDevs are the network interfaces of the PCI function, by name.
	NetDevs []NetDev
	// PNETID is that of an ISM device. For other PCI functions it is that of the first port; no other port is known while no
	// driver has created ports or interfaces.
	PNETID PNETID
	// ISM contains the attributes of an ISM device in the dibs class (Linux 6.18), nil without that class.
	ISM *ISM
	// IVSHMEM describes an ivshmem device, nil for any other.
	IVSHMEM *IVSHMEM
}

// PCI identifies a PCI function. An ID that could not be read is 0.
type PCI struct {
	// Address is domain:bus:device.function, such as "0000:03:00.1".
	Address              string
	Vendor, Device       uint16
	SubVendor, SubDevice uint16
	// Class is the base class, the subclass and the interface, a byte each: 0x020000 for Ethernet.
	Class uint32
	// PhysFn is the address of the physical function, if this one is an SR-IOV virtual function that knows it.
	PhysFn string
}

// ZPCI identifies a PCI function on IBM Z. Fields that the kernel does not provide are nil.
type ZPCI struct {
	// FID is the function ID.
	FID uint32
	// UID is the user-defined ID; UIDUnique reports whether the platform guarantees that it stays unique (Linux 5.12).
	UID       *uint32
	UIDUnique *bool
	// PCHID is the physical channel ID, for ISM devices the virtual one (VCHID).
	PCHID *uint16
	// PFT is the type of PCI function: 0x02 RoCE Express, 0x05 ISM, 0x0a RoCE Express2 and 3, 0x0c and 0x0f Network
	// Express.
	PFT *uint8
	// VFN is the number of the virtual function, 0 for a physical one.
	VFN *uint16
	// Port is the physical port of the adapter, counted from 1; 0 if the function has none or all of them (Linux 5.7).
	Port *uint8
	// Feature is the name that IBM sells the adapter by, such as "RoCE_Express2", empty if not known.
	Feature string
}

// Power reports whether a slot is switched on.
type Power uint8

// The states.
const (
	PowerUnknown Power = iota
	PowerOff
	PowerOn
)

// String returns "on", "off" or "unknown".
func (p Power) String() string {
	switch p {
	case PowerOff:
		return "off"
	case PowerOn:
		return "on"
	}
	return "unknown"
}

// Slot is a PCI slot (/sys/bus/pci/slots).
type Slot struct {
	// Name is the FID as 8 hexadecimal digits on IBM Z, and elsewhere the name that the firmware gives the slot.
	Name string
	// Address is domain:bus:device, without function; empty if not known.
	Address string
	// Power is PowerUnknown for a slot without a switch.
	Power Power
	// Switch reports whether the slot has a power switch; see Scanner.SetPower.
	Switch bool
	// Empty means that the slot reports that it has no device.
	Empty bool
}

// Port is a port of an RDMA device.
type Port struct {
	// Number counts from 1.
	Number uint8
	// State is "ACTIVE", "DOWN", "INIT", "ARMED" or "ACTIVE_DEFER", PhysState "LinkUp" and the like, LinkLayer
	// "Ethernet" or "InfiniBand", Rate as in "100 Gb/sec (4X EDR)"; all as sysfs has them, empty if not known.
	State, PhysState, LinkLayer, Rate string
	// NetDev is the network interface of the port, empty if it has none in this network namespace.
	NetDev string
	// GIDs is the number of GIDs in use, GIDsV2 how many of them are of RoCE version 2. SMC-Rv1 needs one that is not.
	GIDs, GIDsV2 int
	// Table contains these GIDs.
	Table  []GID
	PNETID PNETID
}

// NetDev is a network interface of a PCI function.
type NetDev struct {
	Name string
	// Port is the port of the adapter, counted from 0 (dev_port).
	Port uint16
	// State is that of RFC 2863 in lower case: "up", "down" and so on.
	State string
	// PNETID is the ID of the physical port, or of the interface in the PNET table.
	PNETID PNETID
}

// ISM contains the attributes that only ISM devices have.
type ISM struct {
	// GID is a UUID, Fabric the ID of the fabric, which is the CHID; empty and nil if they could not be read.
	GID    string
	Fabric *uint16
}

// Source is the origin of a PNET ID.
type Source uint8

// The sources.
const (
	SourceNone Source = iota
	// SourceHardware is the firmware (util_string).
	SourceHardware
	// SourceTable is the PNET table, which smc_pnet edits.
	SourceTable
)

// String returns "hardware", "table" or "none".
func (s Source) String() string {
	switch s {
	case SourceHardware:
		return "hardware"
	case SourceTable:
		return "table"
	}
	return "none"
}

// PNETID is the ID of a physical network and its source. Without an ID it is the zero value.
type PNETID struct {
	ID     string
	Source Source
}

// FIDString formats the function ID as the kernel and smc_rnics do: hexadecimal, without leading zeros.
func (z *ZPCI) FIDString() string { return strconv.FormatUint(uint64(z.FID), 16) }

// ID returns the best name to call the device by: that of the RDMA device, the PCI address, the FID, or the slot.
func (d *Device) ID() string {
	switch {
	case d.Name != "":
		return d.Name
	case d.PCI != nil:
		return d.PCI.Address
	case d.ZPCI != nil:
		return "FID " + d.ZPCI.FIDString()
	case d.Slot != nil:
		return "slot " + d.Slot.Name
	}
	return "device"
}

// vendorDevice formats the IDs as lspci -n does.
func (p *PCI) vendorDevice() string { return fmt.Sprintf("%04x:%04x", p.Vendor, p.Device) }
