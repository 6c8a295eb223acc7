// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/smckit/smckit/pkg/smcerr"
)

const opPower = "switch slot"

// SetPower switches the slot of d on or off by its attribute power, and reports whether that changed anything. On IBM Z a
// slot holds one PCI function, and switching it off also deconfigures it in the partition; elsewhere only a slot for hot
// plugging has a switch, and it works on everything in that slot. Software devices have none.
//
// SetPower reads the current state of the slot: d may be old. It checks ctx before it writes; the write itself cannot be
// cancelled, and its duration depends on the platform. The error may be ErrNotSupported, ErrPermission, ErrUnchanged, or
// os.ErrNotExist for a slot that does not exist any more.
func (s *Scanner) SetPower(ctx context.Context, d *Device, on bool) (changed bool, err error) {
	if d.Slot == nil || !d.Slot.Switch {
		return false, &smcerr.Error{Op: "switch", Object: d.ID(), Kind: ErrNotSupported, Remedy: "it has no power switch"}
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	want, value := PowerOff, "0"
	if on {
		want, value = PowerOn, "1"
	}
	path := s.sysfs().path("bus/pci/slots", filepath.Base(d.Slot.Name), "power")
	if power(path) == want {
		return false, nil
	}
	write := s.WriteFile
	if write == nil {
		write = writeFile
	}
	if err := write(path, []byte(value)); err != nil {
		return false, &smcerr.Error{Op: opPower, Object: d.Slot.Name, Kind: smcerr.Kind(err), Err: err}
	}
	if power(path) != want {
		return false, &smcerr.Error{Op: opPower, Object: d.Slot.Name, Kind: ErrUnchanged}
	}
	return true, nil
}

// writeFile writes an attribute in a single write, as sysfs needs it.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
