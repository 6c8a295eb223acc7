// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/jsondoc"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/ism"
)

// powerResult is the output of -e and -d with --json.
type powerResult struct {
	Schema int `json:"schema"`
	// on IBM Z
	FID     string `json:"fid,omitzero"`
	Slot    string `json:"slot_name" schema1:"slot"`
	Power   string `json:"power"`
	Changed bool   `json:"changed"`
}

// switchPower switches the one device that t names on or off.
func switchPower(ctx context.Context, o *options, t *target, on bool) error {
	s := o.scan(true)
	inv, err := s.Scan(ctx)
	if err != nil {
		return err
	}
	d, err := single(inv, t, o.env.Name())
	if err != nil {
		return err
	}
	if !inv.ZPCI && d.Kind == ism.KindOther {
		return fmt.Errorf("%q is neither a RoCE nor an ISM device: %s does not switch it", t.text, o.env.Name())
	}
	if !on && d.Slot != nil && d.Kind != ism.KindOff {
		if err := o.env.Confirm(ctx, "switch off %s: connections over it end, or continue over another adapter", label(d, t)); err != nil {
			return err
		}
	}
	changed, err := s.SetPower(ctx, d, on)
	if err != nil {
		return o.powerError(inv, d, t, on, err)
	}
	verb := "disabled"
	if on {
		verb = "enabled"
	}
	switch {
	case o.json:
		r := powerResult{Schema: jsondoc.Schema, Slot: d.Slot.Name, Power: ism.PowerOff.String(), Changed: changed}
		if on {
			r.Power = ism.PowerOn.String()
		}
		if d.ZPCI != nil {
			r.FID = fid8(d.ZPCI)
		}
		return o.env.WriteJSON(r)
	case !changed:
		_, err = fmt.Fprintf(o.env.Out, "%s is already %s: nothing changed\n", cli.Printable(label(d, t)), verb)
	}
	return err
}

// single returns the device that t names. t may name several devices if they are in the same slot. The name of an adapter's
// interface does not name a soft-RoCE device on it. command is the name of this command.
func single(inv *ism.Inventory, t *target, command string) (*ism.Device, error) {
	found := t.find(inv.Devices)
	if len(found) == 0 {
		return nil, t.unknown(inv, command)
	}
	software := func(d ism.Device) bool { return d.Software }
	if hardware := slices.DeleteFunc(slices.Clone(found), software); len(hardware) > 0 {
		found = hardware
	}
	for _, d := range found[1:] {
		if slotName(&d) != slotName(&found[0]) {
			return nil, remedy.Errorf("use the PCI address of one", "%q names several devices", t.text)
		}
	}
	return &found[0], nil
}

func slotName(d *ism.Device) string {
	if d.Slot == nil {
		return ""
	}
	return d.Slot.Name
}

// label returns the FID of the device, like smc-tools, or else the name that the user gave.
func label(d *ism.Device, t *target) string {
	if d.ZPCI != nil {
		return "FID " + d.ZPCI.FIDString()
	}
	return t.text
}

// powerError explains why switching failed, with the remedy.
func (o *options) powerError(inv *ism.Inventory, d *ism.Device, t *target, on bool, err error) error {
	verb := "disable"
	if on {
		verb = "enable"
	}
	name := label(d, t)
	switch {
	case errors.Is(err, ism.ErrNotSupported) && d.Software:
		return remedy.Errorf("so use 'rdma link' or 'ip link'", "cannot %s %s: it is a software device,", verb, name)
	case errors.Is(err, ism.ErrNotSupported) && !inv.ZPCI:
		return remedy.Errorf("'ip link set' takes an interface up and down", "cannot %s %s: only PCI functions of IBM Z and slots for hot plugging have a power switch;", verb, name)
	case errors.Is(err, os.ErrPermission):
		return remedy.Errorf("run as root, outside of containers", "cannot %s %s: not permitted", verb, name)
	case errors.Is(err, os.ErrNotExist):
		return remedy.Errorf("see '"+o.env.Name()+" --all'", "cannot %s %s: its slot does not exist any more", verb, name)
	case errors.Is(err, context.Canceled):
		return err
	}
	return remedy.Errorf("'dmesg' may show the reason; a function in use, or with virtual functions, stays on", "cannot %s %s: %w", verb, name, cause(err))
}

// cause removes the slot and the path from an error, because the message already names the device.
func cause(err error) error {
	if errors.Is(err, ism.ErrUnchanged) {
		return ism.ErrUnchanged
	}
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}
	return err
}
