// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import "github.com/mdlayher/genetlink"

func parseDevicesR(replies []genetlink.Message) ([]Device, error) {
	return parseDevices(replies, AttrGenDevSMCR, "DEV_SMCR")
}

func parseDevicesD(replies []genetlink.Message) ([]Device, error) {
	return parseDevices(replies, AttrGenDevSMCD, "DEV_SMCD")
}

func parseDevices(replies []genetlink.Message, typ uint16, name string) ([]Device, error) {
	devices := make([]Device, 0, len(replies))
	err := forEach(replies, fields{typ: nest(name, func(b []byte) error {
		d, err := parseDevice(b, typ == AttrGenDevSMCR)
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
// that is not on PCI has no PCI attributes.
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
		AttrDevUseCnt:    to("DEV_USE_CNT", getU32, &d.UseCount),
		AttrDevIsCrit:    to("DEV_IS_CRIT", getBool, &d.Critical),
		AttrDevPCIFID:    to("DEV_PCI_FID", getU32, &d.FID),
		AttrDevPCICHID:   to("DEV_PCI_CHID", getU16, &d.CHID),
		AttrDevPCIVendor: to("DEV_PCI_VENDOR", getU16, &d.Vendor),
		AttrDevPCIDevice: to("DEV_PCI_DEVICE", getU16, &d.Device),
		AttrDevPCIID:     pciID,
		AttrDevPort:      nest("DEV_PORT", func(b []byte) error { return d.addPort(b, 1) }),
		AttrDevPort2:     nest("DEV_PORT2", func(b []byte) error { return d.addPort(b, 2) }),
		AttrDevIBName:    ibName,
	}.parse(b)
	return d, err
}

// addPort decodes a port and adds it to the device, unless the kernel marks it as missing. The kernel sends no such mark for
// the port of an ISM device.
func (d *Device) addPort(b []byte, number uint8) error {
	p := Port{Number: number}
	valid := true
	err := fields{
		AttrDevPortPnetUsr: to("DEV_PORT_PNET_USR", getBool, &p.PNETIDByUser),
		AttrDevPortPNETID:  to("DEV_PORT_PNETID", getPNETID, &p.PNETID),
		AttrDevPortNetdev:  to("DEV_PORT_NETDEV", getU32, &p.NetIfindex),
		AttrDevPortState:   enum("DEV_PORT_STATE", getU8, &p.State),
		AttrDevPortValid:   to("DEV_PORT_VALID", getBool, &valid),
		AttrDevPortLnkCnt:  to("DEV_PORT_LNK_CNT", getU32, &p.Links),
	}.parse(b)
	if err == nil && valid {
		d.Ports = append(d.Ports, p)
	}
	return err
}
