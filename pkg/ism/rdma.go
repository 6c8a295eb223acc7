// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The directory of RDMA devices in sysfs.
const infiniband = "class/infiniband"

// rdmaDevice is an RDMA device and the address of the PCI function that it is on, "" for none.
type rdmaDevice struct {
	Device
	function string
}

// fill adds the attributes of the RDMA device to d, which contains those of its PCI function, if there is one.
func (r *rdmaDevice) fill(d *Device) {
	d.Kind, d.Name, d.Software = r.Kind, r.Name, r.Software
	d.Firmware, d.NodeType, d.NodeGUID = r.Firmware, r.NodeType, r.NodeGUID
	d.Ports = r.Ports
	if r.Model != "" {
		d.Model = r.Model
	}
	for i := range d.Ports {
		if p := &d.Ports[i]; p.NetDev == "" {
			p.NetDev = d.netDevOfPort(p.Number)
		}
	}
}

// netDevOfPort returns the interface that the PCI function has for a port, for ports that have no GIDs now.
func (d *Device) netDevOfPort(number uint8) string {
	for _, n := range d.NetDevs {
		if int(n.Port)+1 == int(number) {
			return n.Name
		}
	}
	return ""
}

// rdmaDevices lists the RDMA devices that netlink or sysfs shows. Both list the same devices unless one of them is not
// accessible, as is often the case for sysfs in a container. If netlink fails, rdmaDevices returns its error and the list of
// sysfs.
func (s *Scanner) rdmaDevices(ctx context.Context) ([]rdmaDevice, error) {
	fs := s.sysfs()
	names := list(fs.path(infiniband))
	var known []RDMADevice
	var err error
	if s.RDMA != nil {
		if known, err = s.RDMA.RDMADevices(ctx); err != nil {
			known = nil
		}
	}
	for _, k := range known {
		if k.Name != "" && !strings.ContainsRune(k.Name, '/') && !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	sortNames(names)

	var out []rdmaDevice
	for _, name := range names {
		r := fs.rdmaDevice(name)
		for _, k := range known {
			if k.Name == name {
				r.complete(k)
			}
		}
		out = append(out, r)
	}
	return out, err
}

// complete adds the values that only netlink provides, and replaces the interfaces by those of netlink.
func (r *rdmaDevice) complete(k RDMADevice) {
	if r.Firmware == "" {
		r.Firmware = k.Firmware
	}
	if r.NodeGUID == "" {
		r.NodeGUID = k.NodeGUID
	}
	for _, kp := range k.Ports {
		i := slices.IndexFunc(r.Ports, func(p Port) bool { return p.Number == kp.Number })
		if i < 0 {
			i = len(r.Ports)
			r.Ports = append(r.Ports, Port{Number: kp.Number})
		}
		p := &r.Ports[i]
		p.NetDev = kp.NetDev
		if p.State == "" {
			p.State = kp.State
		}
	}
}

// rdmaDevice reads a device from sysfs.
func (fs sysfs) rdmaDevice(name string) rdmaDevice {
	dir := fs.path(infiniband, name)
	file := func(name string) string { return filepath.Join(dir, name) }
	r := rdmaDevice{Device: Device{
		Name:     name,
		Firmware: readText(file("fw_ver")),
		NodeType: afterColon(readText(file("node_type"))),
		NodeGUID: readText(file("node_guid")),
	}}
	for _, p := range list(file("ports")) {
		if n, err := strconv.ParseUint(p, 10, 8); err == nil && n > 0 {
			r.Ports = append(r.Ports, fs.port(filepath.Join(dir, "ports", p), uint8(n)))
		}
	}
	// Older kernels put software devices below the PCI function of the interface that they use, although they are not that
	// function.
	switch parent := readText(file("parent")); {
	case parent != "":
		r.Software, r.Model = true, "rxe"
		for i := range r.Ports {
			if r.Ports[i].NetDev == "" {
				r.Ports[i].NetDev = parent
			}
		}
	case strings.HasPrefix(readText(file("node_desc")), "Software iWARP"):
		r.Software, r.Model = true, "siw"
	default:
		r.function = pciFunction(file("device"))
	}
	r.Kind = r.rdmaKind()
	return r
}

// rdmaKind distinguishes RoCE from devices that SMC-R cannot use. Unknown devices count as RoCE.
func (r *rdmaDevice) rdmaKind() Kind {
	if r.NodeType != "" && r.NodeType != "CA" {
		return KindRDMA
	}
	if len(r.Ports) > 0 && !slices.ContainsFunc(r.Ports, func(p Port) bool { return p.LinkLayer != "InfiniBand" }) {
		return KindRDMA
	}
	return KindRoCE
}

// pciFunction returns the address of the PCI function behind the symbolic link, the nearest one if there are bridges
// or further devices on the way to it, "" if there is none.
func pciFunction(link string) string {
	target, err := filepath.EvalSymlinks(link)
	if err != nil {
		return ""
	}
	for _, elem := range slices.Backward(strings.Split(target, string(filepath.Separator))) {
		if pciAddress.MatchString(elem) {
			return elem
		}
	}
	return ""
}

func (fs sysfs) port(dir string, number uint8) Port {
	text := func(name string) string { return readText(filepath.Join(dir, name)) }
	p := Port{
		Number:    number,
		State:     afterColon(text("state")),
		PhysState: afterColon(text("phys_state")),
		LinkLayer: text("link_layer"),
		Rate:      text("rate"),
	}
	p.Table = gids(dir)
	for _, g := range p.Table {
		p.GIDs++
		if g.RoCEv2 {
			p.GIDsV2++
		}
		// The first GID is that of the port's own interface; VLANs and bonds come after it.
		if p.NetDev == "" {
			p.NetDev = g.NetDev
		}
	}
	return p
}
