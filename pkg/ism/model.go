// SPDX-License-Identifier: Apache-2.0

package ism

import "strings"

// ISMVendor and ISMDevice are the PCI IDs of the Internal Shared Memory device of IBM Z.
const (
	ISMVendor = 0x1014
	ISMDevice = 0x04ed
)

// Base class and subclass of PCI functions that may be network adapters.
const classNetwork = 0x02

// Types of PCI functions on IBM Z (PFT).
const (
	pftRoCE1   = 0x02
	pftISM     = 0x05
	pftRoCE2   = 0x0a
	pftNetwork = 0x0c
	pftDirect  = 0x0f
)

// adapters names the PCI functions that are RoCE adapters, by vendor and device. IDs that an adapter shares with others
// that cannot do RoCE are not in it: those count as RoCE when they have an RDMA device. Source: the public list of PCI
// IDs.
var adapters = map[uint32]string{
	// Mellanox, NVIDIA
	0x15b3_1003: "ConnectX-3", 0x15b3_1004: "ConnectX-3-VF", 0x15b3_1007: "ConnectX-3-Pro",
	0x15b3_1013: "ConnectX-4", 0x15b3_1014: "ConnectX-4-VF", 0x15b3_1015: "ConnectX-4-Lx", 0x15b3_1016: "ConnectX-4-Lx-VF",
	0x15b3_1017: "ConnectX-5", 0x15b3_1018: "ConnectX-5-VF", 0x15b3_1019: "ConnectX-5-Ex", 0x15b3_101a: "ConnectX-5-Ex-VF",
	0x15b3_101b: "ConnectX-6", 0x15b3_101c: "ConnectX-6-VF", 0x15b3_101d: "ConnectX-6-Dx", 0x15b3_101e: "ConnectX-VF",
	0x15b3_101f: "ConnectX-6-Lx", 0x15b3_1021: "ConnectX-7", 0x15b3_1023: "ConnectX-8",
	0x15b3_a2d2: "BlueField", 0x15b3_a2d3: "BlueField-VF", 0x15b3_a2d6: "BlueField-2", 0x15b3_a2dc: "BlueField-3",
	// Broadcom
	0x14e4_1750: "BCM57508", 0x14e4_1751: "BCM57504", 0x14e4_1752: "BCM57502", 0x14e4_1760: "BCM57608",
	0x14e4_16d6: "BCM57412", 0x14e4_16d7: "BCM57414", 0x14e4_16d8: "BCM57416",
	// Intel
	0x8086_1591: "E810-C", 0x8086_1592: "E810-C", 0x8086_1593: "E810-C",
	0x8086_1599: "E810-XXV", 0x8086_159a: "E810-XXV", 0x8086_159b: "E810-XXV",
	// Alibaba, Microsoft
	0x1ded_107f: "eRDMA", 0x1414_00ba: "MANA-VF",
}

// driverModels has the models of devices that only the driver identifies.
var driverModels = map[string]string{
	"bnxt_en": "BCM57xxx", "erdma": "eRDMA", "mana": "MANA", "qede": "FastLinQ", "hns3": "HNS", "efa": "EFA",
	"ice": "E8xx", "iavf": "E8xx-VF", "i40e": "X722",
	"mlx4_core": "ConnectX-3", "mlx5_core": "ConnectX",
}

// kind returns the kind of the PCI function, as far as its IDs show.
func (p *PCI) kind() Kind {
	switch {
	case p.Vendor == ISMVendor && p.Device == ISMDevice:
		return KindISM
	case adapters[p.key()] != "":
		return KindRoCE
	}
	return KindOther
}

func (p *PCI) key() uint32 { return uint32(p.Vendor)<<16 | uint32(p.Device) }

// Network reports whether the function is a network adapter of any sort.
func (p *PCI) Network() bool { return p.Class>>16 == classNetwork }

// name sets Model and the feature of IBM Z, and the kind that follows from it.
func (d *Device) name() {
	if d.ZPCI != nil {
		d.ZPCI.Feature = d.feature()
		if d.Kind == KindOther && strings.Contains(d.ZPCI.Feature, "_Express") {
			d.Kind = KindRoCE
		}
	}
	if d.Model != "" || d.PCI == nil {
		return
	}
	switch {
	case d.IVSHMEM != nil:
		d.Model = d.IVSHMEM.model(d.Driver)
	case d.Kind == KindISM:
		d.Model = "ISM"
	case adapters[d.PCI.key()] != "":
		d.Model = adapters[d.PCI.key()]
	case d.Name != "" && driverModels[d.Driver] != "":
		d.Model = driverModels[d.Driver]
	case d.Name != "" && d.Driver != "":
		d.Model = d.Driver
	default:
		d.Model = d.PCI.vendorDevice()
	}
}

// feature returns the name that IBM sells the adapter by. RoCE Express2 and 3 share a type of function; the version of the
// firmware distinguishes them or, if it is unknown (no RDMA driver), the device ID.
func (d *Device) feature() string {
	if d.ZPCI.PFT == nil {
		return ""
	}
	switch *d.ZPCI.PFT {
	case pftRoCE1:
		return "RoCE_Express"
	case pftISM:
		return "ISM"
	case pftRoCE2:
		return d.featureOfRoCE2()
	case pftNetwork, pftDirect:
		return "Network_Express"
	}
	return ""
}

func (d *Device) featureOfRoCE2() string {
	major, _, _ := strings.Cut(d.Firmware, ".")
	switch major {
	case "14":
		return "RoCE_Express2"
	case "22":
		return "RoCE_Express3"
	}
	if d.PCI != nil && d.PCI.Vendor == 0x15b3 {
		switch d.PCI.Device {
		case 0x1015, 0x1016:
			return "RoCE_Express2"
		case 0x101d, 0x101e:
			return "RoCE_Express3"
		}
	}
	return ""
}
