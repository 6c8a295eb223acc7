// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import "github.com/mdlayher/genetlink"

func parseDevicesR(replies []genetlink.Message) ([]Device, error) {
	return parseDevices(replies, genDeviceR, "DEV_SMCR")
}

func parseDevicesD(replies []genetlink.Message) ([]Device, error) {
	return parseDevices(replies, genDeviceD, "DEV_SMCD")
}

func parseDevices(replies []genetlink.Message, typ uint16, name string) ([]Device, error) {
	devices := make([]Device, 0, len(replies))
	err := forEach(replies, fields{typ: nest(name, func(b []byte) error {
		d, err := parseDevice(b, typ == genDeviceR)
		if err != nil {
			return err
		}
		devices = append(devices, d)
		return nil
	})})
	if err != nil {
		return nil, err
	}
	return devices, nil
}

// parseDevice decodes a device. A RoCE device is known by its name, an ISM device by its PCI address; a RoCE device
// that is not on PCI comes without PCI attributes.
func parseDevice(b []byte, roce bool) (Device, error) {
	var d Device
	pciID := to("DEV_PCI_ID", getString, &d.PCIID)
	ibName := to("DEV_IB_NAME", getString, &d.IBName)
	if roce {
		ibName.required = true
	} else {
		pciID.required = true
	}
	err := fields{
		1:  to("DEV_USE_CNT", getU32, &d.UseCount),
		2:  to("DEV_IS_CRIT", getBool, &d.Critical),
		3:  to("DEV_PCI_FID", getU32, &d.FID),
		4:  to("DEV_PCI_CHID", getU16, &d.CHID),
		5:  to("DEV_PCI_VENDOR", getU16, &d.Vendor),
		6:  to("DEV_PCI_DEVICE", getU16, &d.Device),
		7:  pciID,
		8:  nest("DEV_PORT", func(b []byte) error { return d.addPort(b, 1) }),
		9:  nest("DEV_PORT2", func(b []byte) error { return d.addPort(b, 2) }),
		10: ibName,
	}.parse(b)
	return d, err
}

// addPort decodes a port and adds it to the device, unless the kernel says that it does not exist. The kernel sends no
// such word about the port of an ISM device.
func (d *Device) addPort(b []byte, number uint8) error {
	p := Port{Number: number}
	valid := true
	err := fields{
		1: to("DEV_PORT_PNET_USR", getBool, &p.PNETIDByUser),
		2: to("DEV_PORT_PNETID", getPNETID, &p.PNETID),
		3: to("DEV_PORT_NETDEV", getU32, &p.NetIfindex),
		4: enum("DEV_PORT_STATE", getU8, &p.State),
		5: to("DEV_PORT_VALID", getBool, &valid),
		6: to("DEV_PORT_LNK_CNT", getU32, &p.Links),
	}.parse(b)
	if err == nil && valid {
		d.Ports = append(d.Ports, p)
	}
	return err
}
