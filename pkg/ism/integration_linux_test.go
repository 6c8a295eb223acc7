// SPDX-License-Identifier: Apache-2.0

package ism_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
)

// The tests in this file look at the host that runs them, and are skipped where it lacks what they need. The one that
// changes the PNET table runs with SMCKIT_LAB=1 only; it puts the table back.

// softRoCE returns a soft-RoCE device of this host.
func softRoCE(t *testing.T, s ism.Scanner) ism.Device {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	inv, err := s.Scan(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range inv.Problems {
		t.Error("problem:", err)
	}
	i := slices.IndexFunc(inv.Devices, func(d ism.Device) bool { return d.Software && d.Kind == ism.KindRoCE })
	if i < 0 {
		t.Skip("needs a soft-RoCE device: 'rdma link add rxe0 type rxe netdev INTERFACE'")
	}
	return inv.Devices[i]
}

func TestIntegrationSoftRoCE(t *testing.T) {
	d := softRoCE(t, ism.Scanner{RDMA: ism.Netlink{}})
	t.Logf("%+v", d)
	if d.Model != "rxe" || d.PCI != nil || d.NodeType != "CA" || d.NodeGUID == "" {
		t.Errorf("model %q, PCI %v, node type %q, GUID %q", d.Model, d.PCI, d.NodeType, d.NodeGUID)
	}
	if len(d.Ports) != 1 {
		t.Fatalf("%d ports", len(d.Ports))
	}
	p := d.Ports[0]
	if p.Number != 1 || p.State != "ACTIVE" || p.LinkLayer != "Ethernet" {
		t.Errorf("port %d: state %q, link layer %q", p.Number, p.State, p.LinkLayer)
	}
	if _, err := os.Stat(filepath.Join("/sys/class/net", p.NetDev)); p.NetDev == "" || err != nil {
		t.Errorf("interface %q: %v", p.NetDev, err)
	}
	// All GIDs of soft-RoCE are of RoCE version 2.
	if p.GIDs == 0 || p.GIDs != p.GIDsV2 {
		t.Errorf("%d GIDs, %d of them of version 2", p.GIDs, p.GIDsV2)
	}
}

// TestIntegrationNetlink checks that both sources know the same devices, and the same of them.
func TestIntegrationNetlink(t *testing.T) {
	want := softRoCE(t, ism.Scanner{})
	devices, err := ism.Netlink{}.RDMADevices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(devices, func(d ism.RDMADevice) bool { return d.Name == want.Name })
	if i < 0 {
		t.Fatalf("%s is not among %+v", want.Name, devices)
	}
	if got := devices[i]; got.NodeGUID != want.NodeGUID || len(got.Ports) != 1 || got.Ports[0].NetDev != want.Ports[0].NetDev ||
		got.Ports[0].State != want.Ports[0].State || got.Firmware != want.Firmware {
		t.Errorf("netlink %+v, sysfs %+v", got, want)
	}
	// Without sysfs netlink alone must do.
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "class"), 0o755); err != nil {
		t.Fatal(err)
	}
	d := find(t, scan(t, ism.Scanner{Root: root, RDMA: ism.Netlink{}}), want.Name)
	if d.NodeGUID != want.NodeGUID || d.Kind != ism.KindRoCE || len(d.Ports) != 1 || d.Ports[0].State != "ACTIVE" {
		t.Errorf("without sysfs: %+v", d)
	}
}

// TestIntegrationPNETID checks that the table's ID is shown, and shown as the table's.
func TestIntegrationPNETID(t *testing.T) {
	c, err := pnet.New()
	if errors.Is(err, pnet.ErrNoModule) {
		t.Skip("needs an SMC module:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	s := ism.Scanner{RDMA: ism.Netlink{}, PNET: c}
	id := softRoCE(t, s).Ports[0].PNETID
	if id.ID == "" {
		id = addPNETID(t, c, s)
	}
	table, err := c.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := softRoCE(t, s)
	want := pnet.Entry{ID: pnet.ID(id.ID), IB: d.Name, Port: 1}
	if id.Source != ism.SourceTable || !table.Has(want) {
		t.Errorf("%s has PNET ID %+v, the table is %v", d.Name, id, table)
	}
}

// addPNETID gives the soft-RoCE device an ID until the test ends, and returns what a scan makes of it.
func addPNETID(t *testing.T, c *pnet.Client, s ism.Scanner) ism.PNETID {
	t.Helper()
	if os.Getenv("SMCKIT_LAB") != "1" {
		t.Skip("changes the PNET table: set SMCKIT_LAB=1 to allow that")
	}
	const id = "ISMTEST"
	if err := c.Add(t.Context(), pnet.Entry{ID: id, IB: softRoCE(t, s).Name, Port: 1}); errors.Is(err, os.ErrPermission) {
		t.Skip("needs root:", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	got := softRoCE(t, s).Ports[0].PNETID
	if got.ID != id {
		t.Errorf("added %s, got %+v", id, got)
	}
	return got
}
