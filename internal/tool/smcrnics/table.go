// SPDX-License-Identifier: Apache-2.0

package smcrnics

import (
	"cmp"
	"strconv"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/ism"
)

// The listing where PCI functions have no FIDs.

var header = []string{"IB-Dev", "Port", "State", "SMC", "Type", "PCI_ID", "PNET_ID", "Net-Dev"}

// writeTable prints a row for each port of an RDMA device, and one for everything else.
func writeTable(o *options, devices []ism.Device) error {
	var rows [][]string
	for _, d := range devices {
		rows = append(rows, o.rows(&d)...)
	}
	return cli.WriteTable(o.env.Out, header, rows)
}

func (o *options) rows(d *ism.Device) [][]string {
	row := func(name, port, state, smc string, id ism.PNETID, netDev string) []string {
		return []string{
			cmp.Or(name, na), port, cmp.Or(state, na), smc, o.model(d), cmp.Or(address(d), na), pnetID(id),
			cmp.Or(netDev, na),
		}
	}
	var out [][]string
	for _, p := range d.Ports {
		out = append(out, row(d.Name, strconv.Itoa(int(p.Number)), p.State, smcOfPort(d, &p), p.PNETID, p.NetDev))
	}
	if len(out) > 0 {
		return out
	}
	state, smc := "", "-"
	switch {
	case d.Kind == ism.KindOff:
		state = "off"
	case d.Kind == ism.KindISM && (d.IVSHMEM == nil || d.Driver != ""):
		smc = "D"
	}
	for _, n := range d.NetDevs {
		out = append(out, row(d.Name, na, state, smc, n.PNETID, n.Name))
	}
	if len(out) == 0 {
		out = append(out, row(d.Name, na, state, smc, d.PNETID, ""))
	}
	return out
}

// smcOfPort returns which SMC-R can use a port: R for both versions, or if the version is unknown; Rv1 or Rv2 if all GIDs are
// of one kind of RoCE; - for none.
func smcOfPort(d *ism.Device, p *ism.Port) string {
	switch {
	case d.Kind != ism.KindRoCE || p.LinkLayer == "InfiniBand":
		return "-"
	case p.GIDs == 0 || p.GIDsV2 > 0 && p.GIDsV2 < p.GIDs:
		return "R"
	case p.GIDsV2 == 0:
		return "Rv1"
	}
	return "Rv2"
}

func (o *options) model(d *ism.Device) string {
	if o.raw && d.PCI != nil {
		return vendorDevice(d.PCI)
	}
	return cmp.Or(d.Model, na)
}

// address returns the PCI address, or the address of the slot if it is switched off.
func address(d *ism.Device) string {
	switch {
	case d.PCI != nil:
		return d.PCI.Address
	case d.Slot != nil:
		return d.Slot.Address
	}
	return ""
}
