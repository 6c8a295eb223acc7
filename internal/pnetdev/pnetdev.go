// SPDX-License-Identifier: Apache-2.0

// Package pnetdev tells what this machine knows about the devices that entries of the PNET table name.
package pnetdev

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"

	"github.com/smckit/smckit/pkg/pnet"
)

// Devices tells which devices exist in the network namespace of the process.
type Devices interface {
	// Interfaces returns the names of the network interfaces.
	Interfaces() ([]string, error)
	// RDMA returns the names of the RDMA devices.
	RDMA() ([]string, error)
	// Exists says whether there is a PCI function with that address, or an ISM device with that name.
	Exists(name string) bool
}

// Present says whether the device of an entry exists.
func Present(d Devices, e pnet.Entry) (bool, error) {
	list, name := d.Interfaces, e.Eth
	if !e.IsEth() {
		if d.Exists(e.IB) {
			return true, nil
		}
		list, name = d.RDMA, e.IB
	}
	names, err := list()
	return slices.Contains(names, name), err
}

// Missing says that the device of an entry does not exist.
func Missing(e pnet.Entry) string {
	if e.IsEth() {
		return e.Eth + ": no such network interface"
	}
	return e.IB + ": no such RDMA or ISM device"
}

// Hardware tells the PNET ID that firmware has set for a device, "" if none; pnet.Sysfs does.
type Hardware interface {
	Interface(name string) (string, error)
	RDMA(name string, port uint8) (string, error)
	PCI(address string) ([]string, error)
}

// Explain adds to an error of pnet.Apply that the kernel has refused a device for the PNET ID it has from its firmware.
func Explain(h Hardware, err error) error {
	aerr, ok := errors.AsType[*pnet.ApplyError](err)
	if !ok || !errors.Is(aerr.Err, pnet.ErrRefused) || aerr.Step.Delete {
		return err
	}
	if id := hardwareID(h, aerr.Step.Entry); id != "" {
		explained := *aerr
		explained.Err = fmt.Errorf("%s cannot be added to PNET ID %s: it has the PNET ID %q from its hardware",
			aerr.Step.Entry.Device(), aerr.Step.Entry.ID, id)
		return &explained
	}
	return err
}

// hardwareID returns the PNET ID that firmware has set for the device of e.
func hardwareID(h Hardware, e pnet.Entry) string {
	if e.IsEth() {
		id, _ := h.Interface(e.Eth)
		return id
	}
	if id, _ := h.RDMA(e.IB, e.Port); id != "" {
		return id
	}
	ids, _ := h.PCI(e.IB)
	if int(e.Port) <= len(ids) {
		return ids[e.Port-1]
	}
	return ""
}

// Sysfs asks the kernel for interfaces, and sysfs for the rest.
type Sysfs struct {
	// Root is where sysfs is mounted; "" means /sys.
	Root string
}

func (s Sysfs) path(elem ...string) string {
	root := s.Root
	if root == "" {
		root = "/sys"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

// Interfaces is that of Devices.
func (Sysfs) Interfaces() ([]string, error) {
	list, err := net.Interfaces()
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, err
}

// RDMA is that of Devices, and returns nothing where the kernel has no RDMA.
func (s Sysfs) RDMA() ([]string, error) {
	entries, err := os.ReadDir(s.path("class", "infiniband"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names, err
}

// Exists is that of Devices.
func (s Sysfs) Exists(name string) bool {
	// The loopback ISM device is the one without a PCI function.
	path := s.path("bus", "pci", "devices", name)
	if name == loopbackISM {
		path = s.path("devices", name)
	}
	_, err := os.Stat(path)
	return err == nil
}

// loopbackISM is the name of the ISM device of stock kernels that connects a host with itself.
const loopbackISM = "loopback-ism"
