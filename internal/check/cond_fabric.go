// SPDX-License-Identifier: Apache-2.0

package check

import (
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
)

// fabricConditions are about fabrics, the memory that guests of a KVM host share by ivshmem devices. Those about a device
// without driver say why smckit's module does not use it, as far as sysfs shows that. What it shows to root only may be unknown.
var fabricConditions = []Condition{
	{
		ID: "fabric-module", Severity: Warning,
		Text:   "ivshmem device %[1]s has no driver, and smckit's module, which has one, is not loaded",
		Remedy: "install the package smckit-dkms, unload the kernel's own module by 'modprobe -r smc_diag smc', and run 'modprobe smc'",
		Find: eachUnused(func(s *Snapshot, d *ism.Device) Values {
			if s.Module.Loaded && s.Module.Ours {
				return nil
			}
			return Values{d.PCI.Address}
		}),
	},
	{
		ID: "fabric-vectors", Severity: Warning,
		Text:   "ivshmem device %[1]s has %[2]d interrupts, and a fabric needs %[3]d",
		Remedy: "start the guest with QEMU's device ivshmem-doorbell and vectors=%[3]d; docs/ism.md has it for libvirt, too",
		Find: eachUnused(func(_ *Snapshot, d *ism.Device) Values {
			if enoughVectors(d) {
				return nil
			}
			return Values{d.PCI.Address, *d.IVSHMEM.Vectors, ism.FabricVectors}
		}),
	},
	{
		ID: "fabric-unused", Severity: Warning,
		Text:   "smckit's module is loaded, and does not use ivshmem device %[1]s",
		Remedy: "run smc_chk as root, which can read more; then 'echo %[1]s >/sys/bus/pci/drivers/smc-fabric/bind', and see 'dmesg'",
		Find: eachUnused(func(s *Snapshot, d *ism.Device) Values {
			if !s.Module.Loaded || !s.Module.Ours || !enabled(s.Module.SMCD) || !enoughVectors(d) {
				return nil
			}
			return Values{d.PCI.Address}
		}),
	},
	{
		ID: "fabric-header", Severity: Info,
		Text:   "the memory of ivshmem device %[1]s is no fabric: smc_ismd has not written its header there",
		Remedy: "if it is to be one, let QEMU's chardev connect to a socket of smc_ismd, and start the guest again",
		Find: eachIVSHMEM(func(_ *Snapshot, d *ism.Device) Values {
			if d.Driver != "" || d.IVSHMEM.Fabric == nil || *d.IVSHMEM.Fabric {
				return nil
			}
			return Values{d.PCI.Address}
		}),
	},
	{
		ID: "fabric-driver", Severity: Info,
		Text:   "ivshmem device %[1]s belongs to driver %[2]s, so SMC-D cannot use it",
		Remedy: "for a fabric: cd /sys/bus/pci/drivers; echo %[1]s >%[2]s/unbind; echo %[1]s >smc-fabric/bind",
		Find: eachIVSHMEM(func(_ *Snapshot, d *ism.Device) Values {
			if d.Driver == "" || d.Driver == ism.FabricDriver {
				return nil
			}
			return Values{d.PCI.Address, d.Driver}
		}),
	},
	{
		ID: "fabric-no-eid", Severity: Warning,
		Text:   "ISM device %[1]s is a fabric, which only SMC version 2 can use, and this host has no enterprise ID",
		Remedy: "add the same one in all guests that share the fabric: smcr ueid add MYHOST.FABRIC",
		Find: func(s *Snapshot) []Values {
			var out []Values
			for _, d := range s.ISM {
				if isFabric(&d) && s.Identity.Known && !s.Identity.HasEID() {
					out = append(out, Values{d.PCIID})
				}
			}
			return out
		},
	},
}

// eachIVSHMEM makes a condition about each ivshmem device. find returns nil if a device does not meet the condition.
func eachIVSHMEM(find func(s *Snapshot, d *ism.Device) Values) func(*Snapshot) []Values {
	return func(s *Snapshot) []Values {
		var out []Values
		for i := range s.Adapters {
			d := &s.Adapters[i]
			if d.IVSHMEM == nil || d.PCI == nil {
				continue
			}
			if v := find(s, d); v != nil {
				out = append(out, v)
			}
		}
		return out
	}
}

// eachUnused makes a condition about each ivshmem device without driver that may be a fabric.
func eachUnused(find func(s *Snapshot, d *ism.Device) Values) func(*Snapshot) []Values {
	return eachIVSHMEM(func(s *Snapshot, d *ism.Device) Values {
		if d.Driver != "" || d.Kind != ism.KindISM {
			return nil
		}
		return find(s, d)
	})
}

// enoughVectors reports whether an ivshmem device has the interrupts of a fabric, or may have them.
func enoughVectors(d *ism.Device) bool {
	return d.IVSHMEM.Vectors == nil || *d.IVSHMEM.Vectors >= ism.FabricVectors
}

// chidEmulated is the first CHID of SMC-D devices that are memory: the loopback device and fabrics. They have no version 1.
const chidEmulated = 0xff00

// isFabric reports whether a device that the module uses is a fabric.
func isFabric(d *netlinksmc.Device) bool { return d.CHID >= chidEmulated && d.CHID != chidLoopback }
