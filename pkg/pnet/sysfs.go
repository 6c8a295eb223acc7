// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Sysfs reads the PNET IDs that firmware has set, which exist on IBM Z only. They take precedence over the table: a device that
// has one cannot get another.
//
// The methods return "" for a device that has no such ID, or does not exist. An error is ErrPermission if the caller may not
// read sysfs, ErrMalformed if sysfs has unexpected contents, or the error of reading sysfs.
type Sysfs struct {
	// Root is where sysfs is mounted; "" means /sys.
	Root string
}

// Interface returns the ID of a network interface: that of the PCI function or the channel path it uses. Interfaces on
// top of others (VLAN, bond) have none of their own.
func (s Sysfs) Interface(name string) (string, error) {
	device := s.path("class/net", name, "device")
	if device == "" {
		return "", nil
	}
	chpid, err := readWord(filepath.Join(device, "chpid"))
	if err != nil {
		return "", err
	}
	if chpid == "" {
		return s.port(filepath.Join(device, "util_string"), s.path("class/net", name, "dev_port"))
	}
	// Channel paths are named in lower case, the attribute is in upper case.
	path := s.path("devices/css0", "chp0."+strings.ToLower(chpid), "util_string")
	return s.port(path, filepath.Join(device, "portno"))
}

// RDMA returns the ID of a port, counted from 1, of an RDMA device: that of the PCI function it is on.
func (s Sysfs) RDMA(name string, port uint8) (string, error) {
	ids, err := readIDs(s.path("class/infiniband", name, "device", "util_string"))
	return at(ids, int(port)-1), err
}

// PCI returns the IDs of the ports of a PCI function, such as an ISM device, "" for a port without one. address is like
// "0000:00:1f.0".
func (s Sysfs) PCI(address string) ([]string, error) {
	return readIDs(s.path("bus/pci/devices", address, "util_string"))
}

// path returns the path of an attribute of a device, "" if name cannot be the name of one.
func (s Sysfs) path(dir, name string, rest ...string) string {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return ""
	}
	root := s.Root
	if root == "" {
		root = "/sys"
	}
	return filepath.Join(append([]string{root, dir, name}, rest...)...)
}

// port returns the ID in the utility string at path that belongs to the port whose number, counted from 0, is in the
// file portPath.
func (s Sysfs) port(path, portPath string) (string, error) {
	ids, err := readIDs(path)
	if err != nil || len(ids) == 0 {
		return "", err
	}
	number, err := readWord(portPath)
	if err != nil || number == "" {
		return at(ids, 0), err
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return "", smcerr.With(fmt.Errorf("%s: not a port number: %q", portPath, number), ErrMalformed)
	}
	return at(ids, int(port)), nil
}

// at returns ids[i], "" if there is none.
func at(ids []string, i int) string {
	if i < 0 || i >= len(ids) {
		return ""
	}
	return ids[i]
}

// readIDs reads a utility string. A missing one has no IDs.
func readIDs(path string) ([]string, error) {
	b, err := readFile(path)
	if b == nil {
		return nil, err
	}
	return DecodeUtilString(b), nil
}

// readWord reads an attribute of one word, "" if there is no such attribute.
func readWord(path string) (string, error) {
	b, err := readFile(path)
	return strings.TrimSpace(string(b)), err
}

// readFile reads an attribute. It is no error if the attribute does not exist, because only some devices have it.
func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	return b, smcerr.With(err, smcerr.Kind(err))
}
