// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// sortNames sorts names so that numbers in them count as numbers: mlx5_2 before mlx5_10.
func sortNames(names []string) { slices.SortFunc(names, compareNames) }

func compareNames(a, b string) int {
	for a != "" && b != "" {
		na, nb := digits(a), digits(b)
		if na == 0 || nb == 0 {
			if c := cmp.Compare(a[0], b[0]); c != 0 {
				return c
			}
			a, b = a[1:], b[1:]
			continue
		}
		x, y := strings.TrimLeft(a[:na], "0"), strings.TrimLeft(b[:nb], "0")
		if c := cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y), cmp.Compare(na, nb)); c != 0 {
			return c
		}
		a, b = a[na:], b[nb:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits returns how many decimal digits s starts with.
func digits(s string) int {
	if n := strings.IndexFunc(s, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsDigit(r) }); n >= 0 {
		return n
	}
	return len(s)
}

// compareDevices is the order of Inventory.Devices.
func compareDevices(a, b Device) int {
	fid := func(d Device) uint64 {
		if d.ZPCI == nil {
			return math.MaxUint64
		}
		return uint64(d.ZPCI.FID)
	}
	return cmp.Or(
		cmp.Compare(fid(a), fid(b)),
		// "~" comes after every digit: devices without an address are last.
		cmp.Compare(cmp.Or(a.address(), "~"), cmp.Or(b.address(), "~")),
		compareNames(a.Name, b.Name),
	)
}

// address returns the address of the PCI function, or of the slot that it would be in.
func (d *Device) address() string {
	switch {
	case d.PCI != nil:
		return d.PCI.Address
	case d.Slot != nil:
		return d.Slot.Address
	}
	return ""
}
