// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"fmt"
	"slices"
	"strings"
)

// Limits of the kernel's table.
const (
	// MaxEthLen is the length of the longest interface name, in bytes.
	MaxEthLen = maxPNETIDEthname
	// MaxIBLen is the length of the longest name of an RDMA device, in bytes.
	MaxIBLen = maxPNETIDIbname
	// MaxPort is the highest port of an RDMA device; the lowest is 1.
	MaxPort = 2
	// DefaultPort is the port of an RDMA device when none is given, also for devices without ports (ISM).
	DefaultPort = 1
)

// Entry attaches one device to a PNET ID: a network interface, or an RDMA or ISM device. Entries can be compared with ==.
//
// An entry that the kernel has returned need not pass Check: the kernel accepts nearly any name, even an empty one.
type Entry struct {
	ID ID
	// Eth is the name of a network interface.
	Eth string
	// IB is the name of an RDMA device, or the PCI address of an RDMA or ISM device, such as "mlx4_0" or "0000:00:1f.0".
	IB string
	// Port is the port of the RDMA device, 1 or 2; 0 with Eth.
	Port uint8
}

// IsEth reports whether an entry is for a network interface, as opposed to an RDMA or ISM device.
func (e Entry) IsEth() bool { return e.IB == "" && e.Port == 0 }

// SameDevice reports whether two entries are for the same device, whatever its port.
func (e Entry) SameDevice(o Entry) bool {
	return e.IsEth() == o.IsEth() && e.Eth == o.Eth && e.IB == o.IB
}

// String returns the entry as the grammar has it, without the verb: "PNET0 eth eth4" or "PNET0 ib mlx4_0 2".
func (e Entry) String() string { return string(e.ID) + " " + e.Device() }

// Device returns the part of the entry that names the device: "eth eth4" or "ib mlx4_0 2".
func (e Entry) Device() string {
	if e.IsEth() {
		return "eth " + e.Eth
	}
	return fmt.Sprintf("ib %s %d", e.IB, e.Port)
}

// Check reports whether the kernel would accept the entry's values. The error is an *InvalidError.
func (e Entry) Check() error {
	if id, err := ParseID(string(e.ID)); err != nil {
		return err
	} else if id != e.ID {
		return &InvalidError{What: "PNET ID", Value: string(e.ID), Reason: "not in upper case without blanks"}
	}
	switch {
	case e.Eth != "" && e.IB != "":
		return &InvalidError{What: "entry", Value: e.String(), Reason: "names an interface and an RDMA device"}
	case e.IsEth():
		return checkEth(e.Eth)
	case e.Port < 1 || e.Port > MaxPort:
		return &InvalidError{What: "port", Value: fmt.Sprint(e.Port), Reason: portRule}
	}
	return checkIB(e.IB)
}

// portRule is the rule for ports in error messages.
var portRule = fmt.Sprintf("an RDMA device has ports 1 to %d", MaxPort)

// checkEth applies the kernel's rules for the name of an interface.
func checkEth(name string) error {
	const what = "interface"
	if name == "." || name == ".." || strings.ContainsAny(name, "/:") {
		return &InvalidError{What: what, Value: name, Reason: "not the name of a network interface"}
	}
	return checkName(what, name, MaxEthLen)
}

func checkIB(name string) error {
	const what = "RDMA device"
	if strings.ContainsRune(name, '/') {
		return &InvalidError{What: what, Value: name, Reason: "not the name of an RDMA device, nor a PCI address"}
	}
	return checkName(what, name, MaxIBLen)
}

// checkName refuses names that the kernel or the grammar does not allow. Bytes that are not UTF-8 are allowed.
func checkName(what, name string, maxLen int) error {
	invalid := func(format string, args ...any) error {
		return &InvalidError{What: what, Value: name, Reason: fmt.Sprintf(format, args...)}
	}
	if name == "" {
		return invalid("the name is empty")
	}
	if len(name) > maxLen {
		return invalid("%d characters long, at most %d are allowed", len(name), maxLen)
	}
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c == 0x7f {
			return invalid("blanks and control characters are not allowed in a name")
		}
	}
	return nil
}

// Table is a PNET table: entries in the order in which they were added.
type Table []Entry

// Has reports whether e is in the table.
func (t Table) Has(e Entry) bool { return slices.Contains(t, e) }

// IDs returns the PNET IDs of the table, each once, in the order of their first entries.
func (t Table) IDs() []ID {
	var ids []ID
	seen := make(map[ID]bool)
	for _, e := range t {
		if !seen[e.ID] {
			seen[e.ID] = true
			ids = append(ids, e.ID)
		}
	}
	return ids
}

// Of returns the entries of one PNET ID.
func (t Table) Of(id ID) Table {
	return t.filter(func(e Entry) bool { return e.ID == id })
}

// Conflict returns the entry of the table that prevents e from being added: one for the same device. The kernel allows
// an interface, and an RDMA device whatever its port, in one entry only. If e itself is in the table, that is returned.
func (t Table) Conflict(e Entry) (Entry, bool) {
	i := slices.IndexFunc(t, e.SameDevice)
	if i < 0 {
		return Entry{}, false
	}
	return t[i], true
}

// Equal reports whether two tables have the same entries in the same order.
func (t Table) Equal(o Table) bool { return slices.Equal(t, o) }

// Same reports whether two tables have the same entries in any order. No table has an entry twice.
func (t Table) Same(o Table) bool {
	return len(t) == len(o) && len(t.without(o)) == 0
}

// without returns the entries of t that are not in o.
func (t Table) without(o Table) Table {
	in := make(map[Entry]bool, len(o))
	for _, e := range o {
		in[e] = true
	}
	return t.filter(func(e Entry) bool { return !in[e] })
}

// filter returns the entries for which keep is true, in a table of its own.
func (t Table) filter(keep func(Entry) bool) Table {
	var out Table
	for _, e := range t {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}
