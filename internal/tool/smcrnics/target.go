// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/internal/remedy"
	"github.com/smckit/smckit/pkg/ism"
)

// target is a device as the command line names it.
type target struct {
	text string
	// fid is the value of text as a FID, if it is a valid one.
	fid   uint32
	isFID bool
}

// maxName is more than the maximum length of RDMA device names, interface names and PCI addresses.
const maxName = 64

// parseTarget parses a FID (hexadecimal, with or without 0x), or the name or address of a device.
func parseTarget(s string) (*target, error) {
	lower := strings.ToLower(s)
	digits := strings.TrimPrefix(lower, "0x")
	fid, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case err == nil:
		return &target{text: s, fid: uint32(fid), isFID: true}, nil
	case digits != lower:
		return nil, cli.Usagef("%q is not a valid FID: give up to 8 hexadecimal digits", s)
	case s == "" || len(s) > maxName || strings.ContainsFunc(s, unfit):
		return nil, cli.Usagef("%q is neither a FID nor the name or PCI address of a device", s)
	}
	return &target{text: s}, nil
}

// unfit reports whether device names cannot contain r. They can contain bytes that are not UTF-8.
func unfit(r rune) bool {
	return r == '/' || r != utf8.RuneError && (unicode.IsSpace(r) || unicode.IsControl(r))
}

// find returns the devices that t names. A name or an address takes precedence over a FID.
func (t *target) find(devices []ism.Device) []ism.Device {
	var byName, byFID []ism.Device
	for _, d := range devices {
		switch {
		case t.names(&d):
			byName = append(byName, d)
		case t.isFID && d.ZPCI != nil && d.ZPCI.FID == t.fid:
			byFID = append(byFID, d)
		}
	}
	if len(byName) > 0 {
		return byName
	}
	return byFID
}

func (t *target) names(d *ism.Device) bool {
	if d.Name == t.text || d.PCI != nil && d.PCI.Address == strings.ToLower(t.text) {
		return true
	}
	// A function that is switched off has no address of its own, so the address of its slot names it.
	if d.PCI == nil && d.Slot != nil && d.Slot.Address != "" && strings.HasPrefix(t.text+".", d.Slot.Address+".") {
		return true
	}
	for _, n := range d.NetDevs {
		if n.Name == t.text {
			return true
		}
	}
	for _, p := range d.Ports {
		if p.NetDev == t.text {
			return true
		}
	}
	return false
}

// unknown returns the error for a target that does not exist. command is the name of this command.
func (t *target) unknown(inv *ism.Inventory, command string) error {
	var names []string
	for _, d := range inv.Devices {
		if d.Name != "" && d.Kind != ism.KindOther {
			names = append(names, d.Name)
		}
	}
	list := command + " --all"
	switch {
	case !inv.ZPCI && t.isFID:
		return remedy.Errorf("FIDs are for IBM Z; use a name or a PCI address that '"+list+"' shows", "no device %q", t.text)
	case t.isFID:
		return remedy.Errorf("'"+list+"' lists those that do", "FID %x does not exist", t.fid)
	case inv.ZPCI:
		return remedy.Errorf("see '"+list+"'", "%q is not a valid FID, nor the name of a device%s", t.text, cli.Suggest(t.text, names...))
	}
	return cli.NoSuch(fmt.Sprintf("no device %q", t.text), t.text, names, list)
}
