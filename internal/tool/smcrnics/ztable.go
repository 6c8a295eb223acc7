// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/ism"
)

// The listing on IBM Z, the same byte for byte as that of smc-tools.

// na is printed for missing values.
const na = "n/a"

// zRow is a line of the listing.
type zRow struct {
	fid                                                         uint32
	power, address, pchid, model, pft, vf, port, pnetID, device string
}

func (r *zRow) String() string {
	return fmt.Sprintf("%4x  %-5s  %-12s  %-4s   %-15s  %-4s  %-3s  %-4s  %-17s  %s",
		r.fid, r.power, r.address, r.pchid, r.model, r.pft, r.vf, r.port, r.pnetID, r.device)
}

// zRuler is the line below the header.
var zRuler = strings.Repeat("-", 100)

// writeZ prints the PCI functions among devices. It sorts the rows by bytes, independently of the locale.
func writeZ(o *options, devices []ism.Device) error {
	vf, port, device := "VF ", "PPrt", "Net-Dev"
	if o.raw {
		vf = "VFN"
	}
	if o.ibDev {
		port, device = "IPrt", "IB-Dev"
	}
	if _, err := fmt.Fprintf(o.env.Out, "FID   Power  PCI_ID        PCHID  Type             PFT   %s  %s  PNET_ID            %s\n%s\n",
		vf, port, device, zRuler); err != nil {
		return err
	}
	var lines []string
	for _, d := range devices {
		for _, row := range o.zRows(&d) {
			lines = append(lines, row.String())
		}
	}
	slices.Sort(lines)
	// Several RDMA devices on one function share its interfaces.
	for _, line := range slices.Compact(lines) {
		if _, err := fmt.Fprintln(o.env.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// zRows returns the rows for a PCI function or slot, none for anything else: a row for each interface or RDMA port.
func (o *options) zRows(d *ism.Device) []zRow {
	z := d.ZPCI
	switch {
	case z == nil:
		return nil
	case d.Kind == ism.KindOff:
		return []zRow{{fid: z.FID, power: "0"}}
	case d.PCI == nil:
		return nil
	}
	row := zRow{
		fid: z.FID, power: "1", address: d.PCI.Address, pchid: hex(z.PCHID, 4),
		model: o.zModel(d), pft: o.pft(z), vf: o.vf(z), port: o.zPort(z), pnetID: pnetID(d.PNETID), device: na,
	}
	var rows []zRow
	if o.ibDev {
		for _, p := range d.Ports {
			r := row
			r.port, r.pnetID, r.device = strconv.Itoa(int(p.Number)), pnetID(p.PNETID), cli.Printable(d.Name)
			rows = append(rows, r)
		}
	} else {
		for _, n := range d.NetDevs {
			r := row
			r.pnetID, r.device = pnetID(n.PNETID), cli.Printable(n.Name)
			if z.PFT != nil && *z.PFT == pftRoCE1 {
				// One function has both ports, so use the port of the interface.
				r.port = strconv.Itoa(int(n.Port))
			}
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		rows = []zRow{row}
	}
	return rows
}

func (o *options) zModel(d *ism.Device) string {
	if o.raw || d.ZPCI.Feature == "" {
		return vendorDevice(d.PCI)
	}
	return d.ZPCI.Feature
}

// zPort is the port of a function that has only one: that of the adapter, counted from 0, or of the RDMA device.
func (o *options) zPort(z *ism.ZPCI) string {
	switch {
	case z.Port == nil || *z.Port == 0:
		return na
	case o.ibDev:
		return "1"
	}
	return strconv.Itoa(int(*z.Port) - 1)
}

// Types of PCI functions.
const (
	pftRoCE1  = 0x02
	pftISM    = 0x05
	pftRoCE2  = 0x0a
	pftHybrid = 0x0c
	pftDirect = 0x0f
)

// pftNames are the short names of the types.
var pftNames = map[uint8]string{
	pftRoCE1: "ROC", pftISM: "ISM", pftRoCE2: "ROC2", pftHybrid: "NETH", pftDirect: "NETD",
}

func (o *options) pft(z *ism.ZPCI) string {
	if z.PFT != nil && !o.raw && pftNames[*z.PFT] != "" {
		return pftNames[*z.PFT]
	}
	return hex(z.PFT, 2)
}

// vf reports whether the function is virtual. All are, except for unshared functions of Network Express.
func (o *options) vf(z *ism.ZPCI) string {
	switch {
	case z.VFN == nil:
		return na
	case o.raw:
		return hex(z.VFN, 1)
	case *z.VFN == 0 && z.PFT != nil && *z.PFT == pftDirect:
		return "n"
	}
	return "y"
}

// hex formats a number that may be unknown with at least width digits.
func hex[T uint8 | uint16](n *T, width int) string {
	if n == nil {
		return na
	}
	return fmt.Sprintf("%0*x", width, *n)
}

func vendorDevice(p *ism.PCI) string { return fmt.Sprintf("%04x:%04x", p.Vendor, p.Device) }

// pnetID formats a PNET ID; an asterisk means that it comes from the PNET table.
func pnetID(id ism.PNETID) string {
	switch id.Source {
	case ism.SourceHardware:
		return cli.Printable(id.ID)
	case ism.SourceTable:
		return cli.Printable(id.ID) + "*"
	}
	return na
}
