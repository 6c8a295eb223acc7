// SPDX-License-Identifier: Apache-2.0

// Package pnetdev looks up the devices that entries of the PNET table name.
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

// Devices looks up devices in the network namespace of the process.
type Devices interface {
	// Interfaces returns the names of the network interfaces.
	Interfaces() ([]string, error)
	// RDMA returns the names of the RDMA devices.
	RDMA() ([]string, error)
	// Exists reports whether there is a PCI function with that address, or an ISM device with that name.
	Exists(name string) bool
}

// Present reports whether the device of an entry exists.
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

// Missing returns the message that the device of an entry does not exist.
func Missing(e pnet.Entry) string {
	if e.IsEth() {
		return e.Eth + ": no such network interface"
	}
	return e.IB + ": no such RDMA or ISM device"
}

// Hardware returns the PNET ID that firmware has set for a device, "" if there is none. pnet.Sysfs implements it.
type Hardware interface {
	Interface(name string) (string, error)
	RDMA(name string, port uint8) (string, error)
	PCI(address string) ([]string, error)
}

// Explain adds to an error of pnet.Apply that the kernel refused a device because firmware has set its PNET ID.
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

// Sysfs finds interfaces by netlink and other devices in sysfs.
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

// Interfaces implements Devices.
func (Sysfs) Interfaces() ([]string, error) {
	list, err := net.Interfaces()
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, err
}

// RDMA implements Devices. It returns no names if the kernel has no RDMA.
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

// Exists implements Devices.
func (s Sysfs) Exists(name string) bool {
	// The loopback ISM device is the one without a PCI function.
	path := s.path("bus", "pci", "devices", name)
	if name == loopbackISM {
		path = s.path("devices", name)
	}
	_, err := os.Stat(path)
	return err == nil
}

// loopbackISM is the name of the stock kernels' ISM device that connects a host with itself.
const loopbackISM = "loopback-ism"
