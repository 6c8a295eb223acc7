// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMSIXVectors reads configuration spaces, among them those that only the header can be read of, and wrong ones.
func TestMSIXVectors(t *testing.T) {
	config := func(n int, values map[int]byte) []byte {
		b := make([]byte, n)
		for at, v := range values {
			b[at] = v
		}
		return b
	}
	for _, c := range []struct {
		name   string
		config []byte
		want   int // -1: not known
	}{
		{"nothing", nil, -1},
		{"no capabilities", config(64, map[int]byte{0x34: 0x40}), 0},
		{"an empty list", config(64, map[int]byte{6: 0x10}), 0},
		{"the header only", config(64, map[int]byte{6: 0x10, 0x34: 0x40}), -1},
		{"MSI-X, enabled", config(256, map[int]byte{6: 0x10, 0x34: 0x40, 0x40: 0x11, 0x42: 1, 0x43: 0x80}), 2},
		{"MSI-X after another", config(256, map[int]byte{6: 0x10, 0x34: 0x43, 0x40: 9, 0x41: 0x50, 0x50: 0x11, 0x52: 0xff, 0x53: 0xff}), 2048},
		{"others", config(256, map[int]byte{6: 0x10, 0x34: 0x40, 0x40: 9}), 0},
		{"a loop", config(256, map[int]byte{6: 0x10, 0x34: 0x40, 0x40: 9, 0x41: 0x40}), -1},
		{"in the header", config(256, map[int]byte{6: 0x10, 0x34: 0x10}), -1},
		{"at the end", config(254, map[int]byte{6: 0x10, 0x34: 0xfc}), -1},
	} {
		got := -1
		if n := msixVectors(c.config); n != nil {
			got = *n
		}
		if got != c.want {
			t.Errorf("%s: %d vectors, want %d", c.name, got, c.want)
		}
	}
}

func TestResourceSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resource")
	const zeros = "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	for text, want := range map[string]uint64{
		zeros + zeros + "0x00000000f0000000 0x00000000f3ffffff 0x000000000014220c\n" + zeros: 64 << 20,
		zeros + zeros + zeros:   0,
		zeros:                   0,
		zeros + zeros + "0x5\n": 0,
		zeros + zeros + "a b\n": 0,
		zeros + zeros + "0x0 0xffffffffffffffffff\n": 0,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := resourceSize(path, 2); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// TestIVSHMEMKind has devices of all sorts, as root sees them and as others do.
func TestIVSHMEMKind(t *testing.T) {
	for _, c := range []struct {
		driver string
		fabric *bool
		want   Kind
		model  string
	}{
		{FabricDriver, nil, KindISM, "fabric"},
		{"", nil, KindISM, "ivshmem"},
		{"", new(true), KindISM, "ivshmem"},
		{"", new(false), KindOther, "ivshmem"},
		{"vfio-pci", nil, KindOther, "ivshmem"},
	} {
		s := &IVSHMEM{Fabric: c.fabric}
		if got, model := s.kind(c.driver), s.model(c.driver); got != c.want || model != c.model {
			t.Errorf("driver %q, fabric %v: %s %s", c.driver, c.fabric, got, model)
		}
	}
}
