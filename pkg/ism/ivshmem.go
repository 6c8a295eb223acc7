// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"strings"
)

// IVSHMEMVendor and IVSHMEMDevice are the PCI IDs of QEMU's ivshmem devices.
const (
	IVSHMEMVendor = 0x1af4
	IVSHMEMDevice = 0x1110
)

// FabricDriver is the name of the driver that smckit's module has for fabrics.
const FabricDriver = "smc-fabric"

// FabricVectors is how many interrupts a device needs to be a fabric.
const FabricVectors = 2

// FabricMagic is at the beginning of the memory of a fabric (kernel/transport/ism/fabric_layout.h).
const FabricMagic = "SMCFABR\x01"

// IVSHMEM describes an ivshmem device: memory that a KVM host gives several of its guests. With smckit's module it is an ISM
// device, if smc_ismd serves the memory as a fabric.
type IVSHMEM struct {
	// Size is that of the memory in bytes, 0 if it is not known.
	Size uint64
	// Vectors is the number of interrupts that other guests can cause, 0 for a device without doorbells. Only root can read
	// it; nil if it is not known.
	Vectors *int
	// Fabric reports whether the memory begins as a fabric does. It is nil if it is not known: only root can read the memory, and
	// only while it has no driver.
	Fabric *bool
}

func (p *PCI) isIVSHMEM() bool { return p.Vendor == IVSHMEMVendor && p.Device == IVSHMEMDevice }

// ivshmem describes the ivshmem device in a directory, with its driver.
func ivshmem(dir, driver string) *IVSHMEM {
	config := readFile(filepath.Join(dir, "config"))
	s := &IVSHMEM{Size: resourceSize(filepath.Join(dir, "resource"), 2), Vectors: msixVectors(config)}
	if driver == "" && decodesMemory(config) {
		if b := readMapped(filepath.Join(dir, "resource2"), len(FabricMagic)); b != nil {
			s.Fabric = new(string(b) == FabricMagic)
		}
	}
	return s
}

// kind returns KindISM for a device that smckit's module uses, and for one without driver, unless it is no fabric.
func (s *IVSHMEM) kind(driver string) Kind {
	if driver == FabricDriver || driver == "" && (s.Fabric == nil || *s.Fabric) {
		return KindISM
	}
	return KindOther
}

func (s *IVSHMEM) model(driver string) string {
	if driver == FabricDriver {
		return "fabric"
	}
	return "ivshmem"
}

// resourceSize returns the size of a BAR from the attribute resource, 0 if it is not known.
func resourceSize(path string, bar int) uint64 {
	lines := strings.Split(string(readFile(path)), "\n")
	if bar >= len(lines) {
		return 0
	}
	var ends [2]uint64
	fields := strings.Fields(lines[bar])
	for i := range ends {
		if i >= len(fields) {
			return 0
		}
		n, err := strconv.ParseUint(fields[i], 0, 64)
		if err != nil {
			return 0
		}
		ends[i] = n
	}
	if ends[1] <= ends[0] {
		return 0
	}
	return ends[1] - ends[0] + 1
}

// From <linux/pci_regs.h>.
const (
	pciCommand       = 0x04
	pciCommandMemory = 0x02
	pciStatus        = 0x06
	pciStatusCaps    = 0x10
	pciCapabilities  = 0x34
	pciHeaderLen     = 0x40
	pciCapMSIX       = 0x11
	pciMSIXTableSize = 0x7ff
)

// decodesMemory reports whether a PCI function answers to reads of its memory.
func decodesMemory(config []byte) bool {
	return len(config) >= pciHeaderLen && config[pciCommand]&pciCommandMemory != 0
}

// msixVectors returns how many MSI-X interrupts a PCI function has, from its configuration space, of which only root can read
// more than the header; nil if that is not known.
func msixVectors(config []byte) *int {
	if len(config) < pciHeaderLen {
		return nil
	}
	at := 0
	if config[pciStatus]&pciStatusCaps != 0 {
		at = int(config[pciCapabilities]) &^ 3
	}
	// A list that loops ends here: there is room for 48 capabilities.
	for range 48 {
		switch {
		case at == 0:
			return new(0)
		case at < pciHeaderLen || at+4 > len(config):
			return nil
		case config[at] == pciCapMSIX:
			return new(int(binary.LittleEndian.Uint16(config[at+2:])&pciMSIXTableSize) + 1)
		}
		at = int(config[at+1]) &^ 3
	}
	return nil
}
