// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Errors of SetPower, to be tested with errors.Is. No right to switch is os.ErrPermission, a slot that is gone
// os.ErrNotExist.
var (
	// ErrNotSupported means that the device has no power switch. It is that of package smcerr.
	ErrNotSupported = smcerr.ErrNotSupported
	// ErrUnchanged means that the kernel took the request and the slot is as it was.
	ErrUnchanged = errors.New("the slot has not changed its state")
)

// SetPower switches the slot of d on or off by its attribute power, and says whether that changed anything. On IBM Z a
// slot holds one PCI function, and switching it off also deconfigures it in the partition; elsewhere only a slot for hot
// plugging has a switch, and it works on everything in that slot. Software devices have none.
//
// The slot's state is read anew: d may be old.
func (s *Scanner) SetPower(ctx context.Context, d *Device, on bool) (changed bool, err error) {
	if d.Slot == nil || !d.Slot.Switch {
		return false, fmt.Errorf("%s: %w: it has no power switch", d.ID(), ErrNotSupported)
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
		return false, fmt.Errorf("slot %s: %w", d.Slot.Name, err)
	}
	if power(path) != want {
		return false, fmt.Errorf("slot %s: %w", d.Slot.Name, ErrUnchanged)
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
