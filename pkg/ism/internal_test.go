// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSortNames(t *testing.T) {
	names := []string{"mlx5_10", "mlx5_2", "", "mlx5_02", "mlx4_0", "mlx5_bond_0", "10", "9", "mlx5_", "\xff1"}
	want := []string{"", "9", "10", "mlx4_0", "mlx5_", "mlx5_2", "mlx5_02", "mlx5_10", "mlx5_bond_0", "\xff1"}
	sortNames(names)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

// FuzzCompareNames checks that the order is one: sorting would go wrong otherwise.
func FuzzCompareNames(f *testing.F) {
	f.Add("mlx5_2", "mlx5_10", "mlx5_02")
	f.Add("", "0", "00")
	f.Add("a1b", "a01", "a1")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		if compareNames(a, b) != -compareNames(b, a) {
			t.Errorf("%q and %q: %d and %d", a, b, compareNames(a, b), compareNames(b, a))
		}
		if (compareNames(a, b) == 0) != (a == b) {
			t.Errorf("%q and %q compare as equal", a, b)
		}
		if compareNames(a, b) < 0 && compareNames(b, c) < 0 && compareNames(a, c) >= 0 {
			t.Errorf("%q < %q < %q, but not the first and the last", a, b, c)
		}
	})
}

// FuzzAttributes puts the same bytes into every attribute of a device: no content may lose it, or panic.
func FuzzAttributes(f *testing.F) {
	for _, seed := range []string{"", "1", "0x15b3\n", "4: ACTIVE\n", "\x00\xff", "fe80::1", "99999999999999999999", "-1"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		root := t.TempDir()
		files := map[string][]string{
			"bus/pci/devices/0001:00:00.0": {
				"vendor", "device", "subsystem_vendor", "subsystem_device", "class", "function_id", "pchid", "pft", "vfn",
				"uid", "uid_is_unique", "port", "util_string", "net/eth0/dev_port", "net/eth0/operstate", "dibs/x/gid",
				"dibs/x/fabric_id",
			},
			"bus/pci/slots/00000001": {"power", "address"},
			"class/infiniband/dev0": {
				"fw_ver", "node_type", "node_desc", "node_guid", "parent", "ports/1/state", "ports/1/phys_state",
				"ports/1/link_layer", "ports/1/rate", "ports/1/gids/0", "ports/1/gid_attrs/types/0", "ports/1/gid_attrs/ndevs/0",
			},
		}
		for dir, names := range files {
			for _, name := range names {
				path := filepath.Join(root, dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, data, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		inv, err := (&Scanner{Root: root}).Scan(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(inv.Devices, func(d Device) bool { return d.PCI != nil && len(d.NetDevs) == 1 }) {
			t.Error("the PCI function is gone")
		}
		if !slices.ContainsFunc(inv.Devices, func(d Device) bool { return d.Name == "dev0" && len(d.Ports) == 1 }) {
			t.Error("the RDMA device is gone")
		}
	})
}

func TestFeature(t *testing.T) {
	pft := func(n uint8) *uint8 { return &n }
	tests := []struct {
		pft      *uint8
		device   uint16
		firmware string
		want     string
	}{
		{nil, 0x1016, "14.1.1", ""},
		{pft(0x02), 0x1004, "", "RoCE_Express"},
		{pft(0x05), 0x04ed, "", "ISM"},
		{pft(0x0a), 0x101e, "14.32.1", "RoCE_Express2"},
		{pft(0x0a), 0x1016, "22.32.1", "RoCE_Express3"},
		{pft(0x0a), 0x1016, "", "RoCE_Express2"},
		{pft(0x0a), 0x101e, "", "RoCE_Express3"},
		{pft(0x0a), 0x1016, "99.1.1", "RoCE_Express2"},
		{pft(0x0a), 0x9999, "99.1.1", ""},
		{pft(0x0c), 0x101e, "", "Network_Express"},
		{pft(0x0f), 0x1021, "28.1.1", "Network_Express"},
		{pft(0x0b), 0x1016, "14.1.1", ""},
	}
	for _, test := range tests {
		d := Device{Firmware: test.firmware, PCI: &PCI{Vendor: 0x15b3, Device: test.device}, ZPCI: &ZPCI{PFT: test.pft}}
		if got := d.feature(); got != test.want {
			t.Errorf("%+v: %q", test, got)
		}
	}
}

func TestModel(t *testing.T) {
	tests := []struct {
		device Device
		want   string
	}{
		{Device{Model: "rxe"}, "rxe"},
		{Device{Name: "x0"}, ""},
		{Device{Kind: KindISM, PCI: &PCI{Vendor: ISMVendor, Device: ISMDevice}}, "ISM"},
		{Device{Driver: "mlx5_core", PCI: &PCI{Vendor: 0x15b3, Device: 0x1017}}, "ConnectX-5"},
		{Device{Name: "mlx5_0", Driver: "mlx5_core", PCI: &PCI{Vendor: 0x15b3, Device: 0x9999}}, "ConnectX"},
		{Device{Name: "rdma0", Driver: "newdriver", PCI: &PCI{Vendor: 0x1234, Device: 0x5678}}, "newdriver"},
		{Device{Name: "rdma0", PCI: &PCI{Vendor: 0x1234, Device: 0x5678}}, "1234:5678"},
		{Device{Driver: "e1000e", PCI: &PCI{Vendor: 0x8086, Device: 0x1521}}, "8086:1521"},
	}
	for _, test := range tests {
		if test.device.name(); test.device.Model != test.want {
			t.Errorf("%+v: got %q, want %q", test.device.PCI, test.device.Model, test.want)
		}
	}
}
