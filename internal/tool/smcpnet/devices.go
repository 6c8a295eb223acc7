// SPDX-License-Identifier: Apache-2.0

package smcpnet

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/smckit/smckit/internal/cli"
	"github.com/smckit/smckit/pkg/pnet"
)

// devices tells which devices exist in the network namespace of the process.
type devices interface {
	// Interfaces returns the names of the network interfaces.
	Interfaces() ([]string, error)
	// RDMA returns the names of the RDMA devices.
	RDMA() ([]string, error)
	// Exists says whether there is a PCI function with that address, or an ISM device with that name.
	Exists(name string) bool
}

// checkDevices says whether the devices of new entries exist. Mostly one that does not is a mistake; the kernel would
// take the entry and wait for the device.
func (c *command) checkDevices(entries pnet.Table, ch change) error {
	if ch.force {
		return nil
	}
	var unknown []string
	for _, e := range entries {
		exists, err := c.exists(e)
		if err != nil {
			return fmt.Errorf("cannot find out which devices exist: %w; use --force to add entries all the same", err)
		}
		if !exists {
			unknown = append(unknown, missing(e))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	text := strings.Join(unknown, ", ")
	if ch.future {
		fmt.Fprintf(c.env.Err, "%s: warning: %s; the entry has no effect until it appears\n", toolName, cli.Printable(text))
		return nil
	}
	return fmt.Errorf("%s; use --force to add it for later", text)
}

// missing says that the device of e does not exist.
func missing(e pnet.Entry) string {
	if e.IsEth() {
		return e.Eth + ": no such network interface"
	}
	return e.IB + ": no such RDMA or ISM device"
}

func (c *command) exists(e pnet.Entry) (bool, error) {
	list, name := c.sys.devices.Interfaces, e.Eth
	if !e.IsEth() {
		if c.sys.devices.Exists(e.IB) {
			return true, nil
		}
		list, name = c.sys.devices.RDMA, e.IB
	}
	names, err := list()
	return slices.Contains(names, name), err
}

// sysfsDevices asks the kernel for interfaces, and sysfs for the rest.
type sysfsDevices struct {
	// root is where sysfs is mounted; "" means /sys.
	root string
}

func (s sysfsDevices) path(elem ...string) string {
	root := s.root
	if root == "" {
		root = "/sys"
	}
	return filepath.Join(append([]string{root}, elem...)...)
}

func (sysfsDevices) Interfaces() ([]string, error) {
	list, err := net.Interfaces()
	var names []string
	for _, i := range list {
		names = append(names, i.Name)
	}
	return names, err
}

// RDMA returns nothing where the kernel has no RDMA.
func (s sysfsDevices) RDMA() ([]string, error) {
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

func (s sysfsDevices) Exists(name string) bool {
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
