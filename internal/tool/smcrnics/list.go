// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"context"
	"fmt"
	"slices"

	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/ism"
)

// list prints the devices.
func list(ctx context.Context, o *options) error {
	inv, err := o.scan(false).Scan(ctx)
	if err != nil {
		return err
	}
	for _, problem := range inv.Problems {
		o.warn("%v", problem)
	}
	devices, err := o.choose(inv)
	if err != nil {
		return err
	}
	for _, d := range devices {
		switch {
		case d.PCI == nil && d.Kind == ism.KindOther:
			o.warn("FID %s is switched on, and no PCI function is there: 'dmesg' may show the reason", d.ZPCI.FIDString())
		case d.IVSHMEM != nil && d.Driver == "":
			o.warn("ivshmem device %s has no driver: smckit's module has one: unload the kernel's own with 'modprobe -r smc_diag smc' if "+
				"it is loaded, and run 'modprobe smc'; 'smc_chk' shows why smckit's does not use the device", d.PCI.Address)
		}
	}
	switch {
	case o.json:
		return o.env.WriteJSON(newDocument(inv, devices))
	case inv.ZPCI:
		return writeBoth(o, devices)
	}
	return writeTable(o, devices)
}

// writeBoth prints the listing of a host with FIDs. Devices without one, such as soft-RoCE, come behind it, in the table of other
// hosts.
func writeBoth(o *options, devices []ism.Device) error {
	if err := writeZ(o, devices); err != nil {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(devices), func(d ism.Device) bool { return d.ZPCI != nil })
	if len(rest) == 0 {
		return nil
	}
	if _, err := fmt.Fprintln(o.env.Out); err != nil {
		return err
	}
	return writeTable(o, rest)
}

// warn prints a line on standard error that does not change the exit status.
func (o *options) warn(format string, args ...any) {
	o.env.Note("warning: "+format, args...)
}

// choose returns the devices that the options select.
func (o *options) choose(inv *ism.Inventory) ([]ism.Device, error) {
	devices := inv.Devices
	if o.device != nil {
		if devices = o.device.find(devices); len(devices) == 0 {
			return nil, o.device.unknown(inv, o.env.Name())
		}
	}
	var hidden error
	shown := slices.DeleteFunc(slices.Clone(devices), func(d ism.Device) bool {
		why := o.hides(&d, inv.ZPCI)
		if why != nil {
			hidden = why
		}
		return why != nil
	})
	if o.device != nil && len(shown) == 0 {
		return nil, hidden
	}
	return shown, nil
}

// hides returns why the options leave d out, or nil if they do not.
func (o *options) hides(d *ism.Device, z bool) error {
	switch {
	case o.all, d.Kind != ism.KindOther && d.Kind != ism.KindOff:
		return o.hidesAlways(d, z)
	case d.Kind == ism.KindOff:
		return remedy.Errorf("'"+o.env.Name()+" -e' switches it on, --all lists it", "%s is switched off", d.ID())
	case z && (o.raw || d.PCI == nil):
		return nil
	}
	return remedy.Errorf("--all lists it", "%s is neither a RoCE nor an ISM device", d.ID())
}

// hidesAlways returns why no option selects d: on hosts without FIDs, the list leaves out PCI functions other than network
// adapters, which would hide the relevant ones and are listed by 'lspci'.
func (o *options) hidesAlways(d *ism.Device, z bool) error {
	if !z && d.Kind == ism.KindOther && d.PCI != nil && !d.PCI.Network() {
		return remedy.Errorf("'lspci' shows what it is", "%s is not a network adapter", d.ID())
	}
	return nil
}
