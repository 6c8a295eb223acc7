// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"path/filepath"
)

// dibs reads the attributes of the ISM device in dir from the dibs class (Linux 6.18), and stores its name in name. Without
// that class only the PCI function of an ISM device is known.
func dibs(dir string, name *string) *ISM {
	names := list(dir)
	if len(names) == 0 {
		return nil
	}
	*name = names[0]
	return dibsDevice(filepath.Join(dir, names[0]))
}

func dibsDevice(dir string) *ISM {
	return &ISM{
		GID:    readText(filepath.Join(dir, "gid")),
		Fabric: optional[uint16](filepath.Join(dir, "fabric_id"), 16),
	}
}

// virtualISM lists the devices of the dibs class that are on no PCI function: the loopback, which the kernel calls "lo".
// Linux 6.10 to 6.17 has a loopback without a class, which sysfs does not show; netlinksmc does.
func (fs sysfs) virtualISM() []Device {
	var out []Device
	for _, name := range list(fs.path("class/dibs")) {
		dir := fs.path("class/dibs", name)
		if pciFunction(filepath.Join(dir, "device")) != "" {
			continue
		}
		out = append(out, Device{Kind: KindISM, Name: name, Software: true, Model: "loopback", ISM: dibsDevice(dir)})
	}
	return out
}
