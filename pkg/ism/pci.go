// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pciAddress matches the address of a PCI function.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// functions lists all PCI functions.
func (fs sysfs) functions() []Device {
	var out []Device
	for _, address := range list(fs.path("bus/pci/devices")) {
		if pciAddress.MatchString(address) {
			out = append(out, fs.function(address))
		}
	}
	return out
}

func (fs sysfs) function(address string) Device {
	dir := fs.path("bus/pci/devices", address)
	id := func(name string, bits int) uint64 {
		n, _ := readUint(filepath.Join(dir, name), bits)
		return n
	}
	d := Device{
		PCI: &PCI{
			Address:   address,
			Vendor:    uint16(id("vendor", 16)),
			Device:    uint16(id("device", 16)),
			SubVendor: uint16(id("subsystem_vendor", 16)),
			SubDevice: uint16(id("subsystem_device", 16)),
			Class:     uint32(id("class", 24)),
			PhysFn:    linkName(filepath.Join(dir, "physfn")),
		},
		Driver: linkName(filepath.Join(dir, "driver")),
		ZPCI:   zpci(dir),
	}
	d.Kind = d.PCI.kind()
	if d.PCI.isIVSHMEM() {
		d.IVSHMEM = ivshmem(dir, d.Driver)
		d.Kind = d.IVSHMEM.kind(d.Driver)
	}
	d.NetDevs = netDevs(dir)
	if d.Kind == KindISM {
		d.ISM = dibs(filepath.Join(dir, "dibs"), &d.Name)
	}
	return d
}

// zpci reads the identifiers of IBM Z, nil if the function has none.
func zpci(dir string) *ZPCI {
	file := func(name string) string { return filepath.Join(dir, name) }
	fid, ok := readUint(file("function_id"), 32)
	if !ok {
		return nil
	}
	z := &ZPCI{
		FID:   uint32(fid),
		UID:   optional[uint32](file("uid"), 32),
		PCHID: optional[uint16](file("pchid"), 16),
		PFT:   optional[uint8](file("pft"), 8),
		VFN:   optional[uint16](file("vfn"), 16),
		Port:  optional[uint8](file("port"), 8),
	}
	if n, ok := readUint(file("uid_is_unique"), 1); ok {
		unique := n == 1
		z.UIDUnique = &unique
	}
	return z
}

// netDevs lists the interfaces of a function; those of virtio are below a device of their own.
func netDevs(dir string) []NetDev {
	var out []NetDev
	for _, sub := range list(dir) {
		parent := ""
		switch {
		case sub == "net":
			parent = filepath.Join(dir, sub)
		case strings.HasPrefix(sub, "virtio"):
			parent = filepath.Join(dir, sub, "net")
		default:
			continue
		}
		for _, name := range list(parent) {
			out = append(out, netDev(filepath.Join(parent, name), name))
		}
	}
	return out
}

func netDev(dir, name string) NetDev {
	port, _ := readUint(filepath.Join(dir, "dev_port"), 16)
	return NetDev{Name: name, Port: uint16(port), State: readText(filepath.Join(dir, "operstate"))}
}

// slots lists the PCI slots.
func (fs sysfs) slots() []Slot {
	var out []Slot
	for _, name := range list(fs.path("bus/pci/slots")) {
		dir := fs.path("bus/pci/slots", name)
		slot := Slot{
			Name:    name,
			Address: readText(filepath.Join(dir, "address")),
			Switch:  exists(filepath.Join(dir, "power")),
			Empty:   readText(filepath.Join(dir, "adapter")) == "0",
		}
		slot.Power = power(filepath.Join(dir, "power"))
		out = append(out, slot)
	}
	return out
}

func power(path string) Power {
	switch readText(path) {
	case "0":
		return PowerOff
	case "1":
		return PowerOn
	}
	return PowerUnknown
}

// slotFID returns the FID in the name of a slot on IBM Z.
func slotFID(name string) (uint32, bool) {
	if len(name) != 8 {
		return 0, false
	}
	fid, err := strconv.ParseUint(name, 16, 32)
	return uint32(fid), err == nil
}

// placeSlots puts devices into their slots, and adds a device for each slot that is switched off. Virtual machines have
// many slots that are off because they are empty; those hold no device.
func placeSlots(devices []Device, slots []Slot, z bool) []Device {
	for _, slot := range slots {
		holds := func(d Device) bool {
			return d.PCI != nil && slot.Address != "" && strings.HasPrefix(d.PCI.Address, slot.Address+".")
		}
		var id *ZPCI
		if z {
			fid, ok := slotFID(slot.Name)
			if !ok {
				continue
			}
			id = &ZPCI{FID: fid}
			holds = func(d Device) bool { return d.ZPCI != nil && d.ZPCI.FID == fid }
		}
		if !slices.ContainsFunc(devices, holds) {
			if slot.Power == PowerOff && !slot.Empty || z {
				devices = append(devices, Device{Kind: emptyKind(slot), ZPCI: id, Slot: &slot})
			}
			continue
		}
		for i := range devices {
			if holds(devices[i]) {
				devices[i].Slot = &slot
			}
		}
	}
	return devices
}

// emptyKind is the kind of a slot without a visible function. If the slot is on, its function is just being added or removed.
func emptyKind(slot Slot) Kind {
	if slot.Power == PowerOff {
		return KindOff
	}
	return KindOther
}
