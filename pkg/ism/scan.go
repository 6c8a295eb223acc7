// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/smckit/smckit/pkg/pnet"
)

// RDMADevice is an RDMA device as netlink shows it.
type RDMADevice struct {
	Name string
	// Firmware is empty if the device has none.
	Firmware string
	// NodeGUID is written as in sysfs.
	NodeGUID string
	Ports    []RDMAPort
}

// RDMAPort is a port of an RDMADevice.
type RDMAPort struct {
	// Number counts from 1.
	Number uint8
	// State is a word as sysfs has it, such as "ACTIVE"; empty if unknown.
	State string
	// NetDev is the interface of the port, empty if it has none in the network namespace of the request. It is correct where
	// sysfs is wrong: sysfs shows the names that interfaces have in their own namespaces.
	NetDev string
}

// RDMALister lists the RDMA devices of the network namespace. Netlink implements it.
type RDMALister interface {
	RDMADevices(ctx context.Context) ([]RDMADevice, error)
}

// PNETLister lists the PNET table. A *pnet.Client implements it.
type PNETLister interface {
	List(ctx context.Context) (pnet.Table, error)
}

// Scanner finds devices. The zero Scanner reads only /sys of this host.
type Scanner struct {
	// Root is where sysfs is mounted, /sys if empty.
	Root string
	// Arch is the architecture as in GOARCH; empty means that of the program. It matters on IBM Z while all functions are
	// switched off.
	Arch string
	// RDMA lists the RDMA devices; without it, or if it fails, Scan uses the list of sysfs.
	RDMA RDMALister
	// PNET lists the PNET table; without it, PNET IDs are those of the hardware. If no SMC module is loaded, there is no table;
	// that is no error.
	PNET PNETLister
	// WriteFile writes an attribute of sysfs, os.WriteFile without creating files if nil.
	WriteFile func(path string, data []byte) error
}

func (s *Scanner) sysfs() sysfs {
	if s.Root == "" {
		return "/sys"
	}
	return sysfs(s.Root)
}

// Scan lists the devices of this host. Any user may do that. The error is os.ErrNotExist if there is no sysfs.
func (s *Scanner) Scan(ctx context.Context) (*Inventory, error) {
	fs := s.sysfs()
	if !exists(fs.path("bus")) && !exists(fs.path("class")) {
		return nil, fmt.Errorf("no sysfs at %s, mount it: %w", fs.path(), os.ErrNotExist)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	inv := &Inventory{}
	functions := fs.functions()
	slots := fs.slots()
	inv.ZPCI = s.isZ(functions)

	rdma, err := s.rdmaDevices(ctx)
	if err != nil {
		inv.Problems = append(inv.Problems, err)
	}
	table, err := s.table(ctx)
	if err != nil {
		inv.Problems = append(inv.Problems, err)
	}

	inv.Devices = s.join(functions, rdma)
	inv.Devices = placeSlots(inv.Devices, slots, inv.ZPCI)
	inv.Devices = append(inv.Devices, fs.virtualISM()...)
	for i := range inv.Devices {
		d := &inv.Devices[i]
		d.name()
		fs.setPNETIDs(d, table)
	}
	slices.SortStableFunc(inv.Devices, compareDevices)
	return inv, ctx.Err()
}

// isZ reports whether the PCI functions are those of IBM Z.
func (s *Scanner) isZ(functions []Device) bool {
	arch := s.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	return arch == "s390x" || slices.ContainsFunc(functions, func(d Device) bool { return d.ZPCI != nil })
}

// table reads the PNET table, which is empty when there is no SMC module.
func (s *Scanner) table(ctx context.Context) (pnet.Table, error) {
	if s.PNET == nil {
		return nil, nil
	}
	table, err := s.PNET.List(ctx)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return table, err
}

// join combines RDMA devices and PCI functions: a function with RDMA devices becomes one Device for each of them.
func (s *Scanner) join(functions []Device, rdma []rdmaDevice) []Device {
	var out []Device
	for _, f := range functions {
		n := len(out)
		for _, r := range rdma {
			if r.function == f.PCI.Address {
				d := f
				r.fill(&d)
				out = append(out, d)
			}
		}
		if len(out) == n {
			out = append(out, f)
		}
	}
	for _, r := range rdma {
		if !slices.ContainsFunc(functions, func(f Device) bool { return f.PCI.Address == r.function }) {
			var d Device
			r.fill(&d)
			out = append(out, d)
		}
	}
	return out
}
