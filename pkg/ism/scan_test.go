// SPDX-License-Identifier: Apache-2.0

package ism_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/smckit/smckit/internal/sysfstest"
	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/smcerr"
)

// table is a PNET table, or the failure to read it.
type table struct {
	entries pnet.Table
	err     error
}

func (t table) List(context.Context) (pnet.Table, error) { return t.entries, t.err }

// rdma is what netlink says.
type rdma struct {
	devices []ism.RDMADevice
	err     error
}

func (r rdma) RDMADevices(context.Context) ([]ism.RDMADevice, error) { return r.devices, r.err }

func scan(t *testing.T, s ism.Scanner) *ism.Inventory {
	t.Helper()
	inv, err := s.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func find(t *testing.T, inv *ism.Inventory, id string) ism.Device {
	t.Helper()
	for _, d := range inv.Devices {
		if d.ID() == id || d.PCI != nil && d.PCI.Address == id {
			return d
		}
	}
	t.Fatalf("no device %s", id)
	return ism.Device{}
}

// summary is a line per device: what it is and where its PNET IDs come from.
func summary(inv *ism.Inventory) string {
	var b strings.Builder
	for _, d := range inv.Devices {
		fmt.Fprintf(&b, "%s %s %s", d.ID(), d.Kind, d.Model)
		if d.ZPCI != nil {
			fmt.Fprintf(&b, " fid=%s/%s", d.ZPCI.FIDString(), d.ZPCI.Feature)
		}
		if d.Slot != nil {
			fmt.Fprintf(&b, " power=%s", d.Slot.Power)
		}
		for _, p := range d.Ports {
			fmt.Fprintf(&b, " %d:%s:%s:%s:%s", p.Number, p.State, p.NetDev, p.PNETID.ID, p.PNETID.Source)
		}
		for _, n := range d.NetDevs {
			fmt.Fprintf(&b, " net=%s:%d:%s:%s", n.Name, n.Port, n.PNETID.ID, n.PNETID.Source)
		}
		if d.PNETID.ID != "" {
			fmt.Fprintf(&b, " %s:%s", d.PNETID.ID, d.PNETID.Source)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestScanS390X(t *testing.T) {
	inv := scan(t, ism.Scanner{Root: sysfstest.S390X(t), PNET: table{entries: pnet.Table{
		{ID: "SOFT1", IB: "mlx5_1", Port: 1},
		{ID: "SOFT2", IB: "0605:00:00.0", Port: 1},
		{ID: "HIDDEN", IB: "mlx4_0", Port: 1},
		{ID: "SOFT3", Eth: "enP3p0s0np0"},
	}}})
	want := `mlx4_0 roce ConnectX-3-VF fid=23/RoCE_Express power=on 1:ACTIVE:ens1:NET1:hardware 2:DOWN:ens1d1:NET2:hardware net=ens1:0:NET1:hardware net=ens1d1:1:NET2:hardware NET1:hardware
FID 50a off  fid=50a/ power=off
0605:00:00.0 ism ISM fid=605/ISM power=on SOFT2:table
0606:00:00.0 ism ISM fid=606/ISM power=on NET1:hardware
FID 777 other  fid=777/ power=on
mlx5_0 roce ConnectX-4-Lx-VF fid=8ca/RoCE_Express2 power=on 1:ACTIVE:enP2p0s0np0:NETWORKTWO123456:hardware net=enP2p0s0np0:0:NETWORKTWO123456:hardware NETWORKTWO123456:hardware
mlx5_1 roce ConnectX-VF fid=8ea/RoCE_Express3 power=on 1:ACTIVE:enP3p0s0np0:SOFT1:table net=enP3p0s0np0:0:SOFT3:table SOFT1:table
0b05:00:00.0 other 1014:0611 fid=b05/ power=on
0004:00:00.0 roce ConnectX-7 fid=1001/Network_Express power=on net=enP4p0s0np0:0:NET3:hardware NET3:hardware
0005:00:00.0 roce ConnectX-VF fid=1002/Network_Express power=on NET3:hardware
lo ism loopback
rxe0 roce rxe 1:ACTIVE:enP2p0s0np0::none
`
	if diff := cmp.Diff(want, summary(inv)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if !inv.ZPCI || len(inv.Problems) > 0 {
		t.Errorf("ZPCI %v, problems %v", inv.ZPCI, inv.Problems)
	}
}

func TestScanX86(t *testing.T) {
	inv := scan(t, ism.Scanner{Root: sysfstest.X86(t), Arch: "amd64", PNET: table{entries: pnet.Table{
		{ID: "PNET0", IB: "rxe0", Port: 1},
		{ID: "PNET0", Eth: "eth0"},
		{ID: "PNET1", IB: "mlx5_0", Port: 2},
		{ID: "PNET2", IB: "0000:04:00.0", Port: 1},
		{ID: "PNET3", IB: "0000:00:04.0", Port: 1},
	}}})
	want := `0000:00:03.0 other 1af4:1000 net=eth0:0:PNET0:table
0000:00:04.0 ism fabric PNET3:table
0000:00:05.0 ism ivshmem
0000:00:06.0 other ivshmem
0000:00:07.0 other ivshmem
mlx5_0 roce ConnectX-6-Dx power=on 1:ACTIVE:ens1f0np0::none net=ens1f0np0:0::none
mlx5_1 roce ConnectX-6-Dx power=on 1:DOWN:ens1f1np1::none net=ens1f1np1:0::none
mlx5_10 roce ConnectX-VF power=on 1:ACTIVE:ens1f0v0::none net=ens1f0v0:0::none
bnxt_re0 roce BCM57414 power=unknown 1:ACTIVE:ens2:PNET2:table net=ens2:0:PNET2:table PNET2:table
irdma0 rdma E810-XXV 1:ACTIVE:ens3::none net=ens3:0::none
mlx4_0 rdma ConnectX-3 1:ACTIVE:::none 2:DOWN:::none
0000:07:00.0 roce ConnectX-5 net=ens7:0::none
0000:08:00.0 other 8086:1521 power=on net=eno1:0::none
0000:09:00.0 other 1000:0097
slot 2 off  power=off
rxe0 roce rxe 1:ACTIVE:eth0:PNET0:table
siw0 rdma siw 1:ACTIVE:::none
`
	if diff := cmp.Diff(want, summary(inv)); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if inv.ZPCI {
		t.Error("taken for IBM Z")
	}
}

func TestScanDetails(t *testing.T) {
	inv := scan(t, ism.Scanner{Root: sysfstest.S390X(t)})
	want := ism.Device{
		Kind: ism.KindRoCE, Name: "mlx4_0", Model: "ConnectX-3-VF", Driver: "mlx4_core",
		Firmware: "2.35.5000", NodeType: "CA", NodeGUID: "0014:0500:aa00:0001",
		PCI: &ism.PCI{
			Address: "0001:00:00.0", Vendor: 0x15b3, Device: 0x1004, SubVendor: 0x15b3, SubDevice: 0x61b0, Class: 0x020000,
		},
		ZPCI: &ism.ZPCI{
			FID: 0x23, UID: new(uint32(1)), UIDUnique: new(true), PCHID: new(uint16(0x1c4)), PFT: new(uint8(2)),
			VFN: new(uint16(2)), Port: new(uint8(0)), Feature: "RoCE_Express",
		},
		Slot: &ism.Slot{Name: "00000023", Address: "0001:00:00", Power: ism.PowerOn, Switch: true},
		Ports: []ism.Port{
			{
				Number: 1, State: "ACTIVE", PhysState: "LinkUp", LinkLayer: "Ethernet", NetDev: "ens1", GIDs: 1,
				Table:  []ism.GID{{Addr: netip.MustParseAddr("fe80::14:5ff:feaa:1"), NetDev: "ens1"}},
				PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceHardware},
			},
			{
				Number: 2, State: "DOWN", PhysState: "Disabled", LinkLayer: "Ethernet", NetDev: "ens1d1",
				PNETID: ism.PNETID{ID: "NET2", Source: ism.SourceHardware},
			},
		},
		NetDevs: []ism.NetDev{
			{Name: "ens1", Port: 0, State: "up", PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceHardware}},
			{Name: "ens1d1", Port: 1, State: "down", PNETID: ism.PNETID{ID: "NET2", Source: ism.SourceHardware}},
		},
		PNETID: ism.PNETID{ID: "NET1", Source: ism.SourceHardware},
	}
	if diff := cmp.Diff(want, find(t, inv, "mlx4_0"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
		t.Errorf("mlx4_0 (-want +got):\n%s", diff)
	}
	wantISM := &ism.ISM{GID: "00000000-0000-0000-0000-0000000000a1", Fabric: new(uint16(0x7c2))}
	if diff := cmp.Diff(wantISM, find(t, inv, "0606:00:00.0").ISM); diff != "" {
		t.Errorf("ISM (-want +got):\n%s", diff)
	}
	vf := find(t, scan(t, ism.Scanner{Root: sysfstest.X86(t), Arch: "amd64"}), "mlx5_10")
	if vf.PCI.PhysFn != "0000:03:00.0" || vf.Ports[0].GIDs != 1 || vf.Ports[0].GIDsV2 != 1 {
		t.Errorf("virtual function: %+v, ports %+v", vf.PCI, vf.Ports)
	}
}

// TestScanIVSHMEM checks what is known of each ivshmem device of the fixture.
func TestScanIVSHMEM(t *testing.T) {
	inv := scan(t, ism.Scanner{Root: sysfstest.X86(t), Arch: "amd64"})
	for address, want := range map[string]ism.IVSHMEM{
		"0000:00:04.0": {Vectors: new(2)},
		"0000:00:05.0": {Vectors: new(2), Fabric: new(true)},
		"0000:00:06.0": {},
		"0000:00:07.0": {Vectors: new(0), Fabric: new(false)},
	} {
		if diff := cmp.Diff(&want, find(t, inv, address).IVSHMEM); diff != "" {
			t.Errorf("%s (-want +got):\n%s", address, diff)
		}
	}
}

// TestScanNetlink checks how both sources are joined: sysfs wins, netlink fills up.
func TestScanNetlink(t *testing.T) {
	root := sysfstest.Make(t, `
		[class/infiniband/rxe0]
		parent = eth0
		ports/1/state = 4: ACTIVE
		fw_ver = 1.0
	`)
	list := []ism.RDMADevice{
		{Name: "rxe0", Firmware: "2.0", NodeGUID: "a:b:c:d", Ports: []ism.RDMAPort{{Number: 1, State: "DOWN"}}},
		{Name: "only_netlink", Firmware: "3.0", Ports: []ism.RDMAPort{{Number: 2, State: "INIT", NetDev: "eth9"}}},
		{Name: "../../etc"},
		{Name: ""},
	}
	inv := scan(t, ism.Scanner{Root: root, Arch: "amd64", RDMA: rdma{devices: list}})
	if len(inv.Devices) != 2 {
		t.Fatalf("devices: %s", summary(inv))
	}
	rxe := find(t, inv, "rxe0")
	if rxe.Firmware != "1.0" || rxe.NodeGUID != "a:b:c:d" || len(rxe.Ports) != 1 {
		t.Errorf("rxe0: %+v", rxe)
	}
	// The interface of soft-RoCE is in another namespace, but sysfs shows its name.
	if p := rxe.Ports[0]; p.State != "ACTIVE" || p.NetDev != "" {
		t.Errorf("port of rxe0: %+v", p)
	}
	d := find(t, inv, "only_netlink")
	if want := []ism.Port{{Number: 2, State: "INIT", NetDev: "eth9"}}; d.Kind != ism.KindRoCE || d.Firmware != "3.0" ||
		!cmp.Equal(d.Ports, want) {
		t.Errorf("only_netlink: %+v", d)
	}

	broken := errors.New("no luck")
	inv = scan(t, ism.Scanner{Root: root, Arch: "amd64", RDMA: rdma{devices: list, err: broken}})
	if len(inv.Devices) != 1 || inv.Devices[0].Ports[0].NetDev != "eth0" || len(inv.Problems) != 1 || !errors.Is(inv.Problems[0], broken) {
		t.Errorf("failing netlink: %sproblems %v", summary(inv), inv.Problems)
	}
}

func TestScanPNETProblems(t *testing.T) {
	root := sysfstest.X86(t)
	inv := scan(t, ism.Scanner{Root: root, Arch: "amd64", PNET: table{err: &smcerr.Error{Kind: pnet.ErrNoModule, Err: os.ErrNotExist}}})
	if len(inv.Problems) != 0 {
		t.Errorf("no module: problems %v", inv.Problems)
	}
	inv = scan(t, ism.Scanner{Root: root, Arch: "amd64", PNET: table{err: pnet.ErrMalformed}})
	if len(inv.Problems) != 1 || len(inv.Devices) == 0 {
		t.Errorf("malformed answer: problems %v, %d devices", inv.Problems, len(inv.Devices))
	}
}

func TestScanNothing(t *testing.T) {
	s := ism.Scanner{Root: filepath.Join(t.TempDir(), "sys")}
	if _, err := s.Scan(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without sysfs: %v", err)
	}
	inv := scan(t, ism.Scanner{Root: sysfstest.Make(t, "bus/"), Arch: "amd64"})
	if len(inv.Devices) != 0 || inv.ZPCI {
		t.Errorf("empty sysfs: %+v", inv)
	}
	inv = scan(t, ism.Scanner{Root: sysfstest.Make(t, "bus/pci/slots/0000050a/power = 0"), Arch: "s390x"})
	if got := summary(inv); got != "FID 50a off  fid=50a/ power=off\n" || !inv.ZPCI {
		t.Errorf("IBM Z with all functions off: %v %q", inv.ZPCI, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Scan(ctx); err == nil {
		t.Error("a cancelled scan succeeds")
	}
}

// TestScanGarbage checks that nothing in sysfs can keep a device from being listed.
func TestScanGarbage(t *testing.T) {
	root := sysfstest.Make(t, `
		[bus/pci/devices/0000:01:00.0]
		vendor = 0x15b3
		device = 0x101d
		[bus/pci/devices/0000:02:00.0]
		vendor = 0x15b3
		device = 0x101d
		class = no number
		function_id = 0x123456789
		driver = not a link
		physfn = not a link
		net = not a directory
		[bus/pci/devices/0000:03:00.0]
		vendor/
		device/
		[bus/pci/devices]
		0000:04:00.0 = a file
		0000:05:00.0 -> /nowhere
		../etc = no address
		[bus/pci/slots]
		00000001/power = 2
		zzzzzzzz/power = 0
		1/power/
		[class/infiniband/bad_0]
		device -> /nowhere
		node_type = 1
		ports/0/state = 4: ACTIVE
		ports/256/state = 4: ACTIVE
		ports/one/state = 4: ACTIVE
		ports/1/state = `+strings.Repeat("x", 10000)+`
		ports/1/gids/0 = ::
		ports/2/gids = no directory
		[class/infiniband]
		bad_1 = a file
		bad_2 -> bad_2
		[class/dibs]
		lo = a file
	`)
	inv := scan(t, ism.Scanner{Root: root, Arch: "amd64"})
	var ids []string
	for _, d := range inv.Devices {
		ids = append(ids, d.ID()+" "+d.Kind.String())
	}
	want := []string{
		"0000:01:00.0 roce", "0000:02:00.0 roce", "0000:03:00.0 other", "0000:04:00.0 other", "0000:05:00.0 other",
		"slot zzzzzzzz off", "bad_0 roce", "bad_1 roce", "bad_2 roce", "lo ism",
	}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	bad := find(t, inv, "bad_0")
	if len(bad.Ports) != 2 || len(bad.Ports[0].State) > 4096 {
		t.Errorf("bad_0 has %d ports", len(bad.Ports))
	}
}

// TestGIDs says that the GIDs that are in use are those of the table, in its order, and what else is there is no GID.
func TestGIDs(t *testing.T) {
	s := ism.Scanner{Root: sysfstest.Make(t, `
[class/infiniband/mlx5_0]
node_type = 1: CA
ports/1/state = 4: ACTIVE
ports/1/gids/10 = 0000:0000:0000:0000:0000:ffff:0a00:0001
ports/1/gid_attrs/types/10 = RoCE v2
ports/1/gid_attrs/ndevs/10 = eth0.7
ports/1/gids/2 = fe80:0000:0000:0000:0000:0000:0000:0001
ports/1/gid_attrs/types/2 = IB/RoCE v1
ports/1/gid_attrs/ndevs/2 = eth0
ports/1/gids/3 = 0000:0000:0000:0000:0000:0000:0000:0000
ports/1/gids/4 = rubbish
ports/1/gids/5 =
[bus]
pci/
`)}
	inv, err := s.Scan(t.Context())
	if err != nil || len(inv.Devices) != 1 || len(inv.Devices[0].Ports) != 1 {
		t.Fatalf("%v %+v", err, inv)
	}
	p := inv.Devices[0].Ports[0]
	want := []ism.GID{
		{Index: 2, Addr: netip.MustParseAddr("fe80::1"), NetDev: "eth0"},
		{Index: 10, Addr: netip.MustParseAddr("::ffff:10.0.0.1"), RoCEv2: true, NetDev: "eth0.7"},
	}
	if !slices.Equal(p.Table, want) || p.GIDs != 2 || p.GIDsV2 != 1 || p.NetDev != "eth0" {
		t.Errorf("%+v", p)
	}
}
