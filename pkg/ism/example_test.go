// SPDX-License-Identifier: Apache-2.0

package ism_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"testing/fstest"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
)

// staticTable is a PNET table that was read before.
type staticTable pnet.Table

func (t staticTable) List(context.Context) (pnet.Table, error) { return pnet.Table(t), nil }

// List the ports that SMC-R can use now, with their PNET IDs. On a host, leave Root out, and use ism.Netlink for RDMA and a
// *pnet.Client for PNET. Here sysfs is a directory with a RoCE adapter.
func ExampleScanner_Scan() {
	sysfs, err := os.MkdirTemp("", "sysfs")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(sysfs)
	const device = "class/infiniband/mlx5_0/"
	err = os.CopyFS(sysfs, fstest.MapFS{
		device + "node_type":                 {Data: []byte("1: CA\n")},
		device + "ports/1/state":             {Data: []byte("4: ACTIVE\n")},
		device + "ports/1/link_layer":        {Data: []byte("Ethernet\n")},
		device + "ports/1/gids/0":            {Data: []byte("0000:0000:0000:0000:0000:ffff:0a00:0001\n")},
		device + "ports/1/gid_attrs/types/0": {Data: []byte("RoCE v2\n")},
		device + "ports/1/gid_attrs/ndevs/0": {Data: []byte("eth0\n")},
	})
	if err != nil {
		log.Fatal(err)
	}

	s := ism.Scanner{Root: sysfs, PNET: staticTable{{ID: "NET1", IB: "mlx5_0", Port: 1}}}
	inv, err := s.Scan(context.Background())
	if err != nil {
		log.Print(err)
		return
	}
	for _, d := range inv.Devices {
		for _, p := range d.Ports {
			if d.Kind == ism.KindRoCE && p.State == "ACTIVE" {
				fmt.Printf("%s port %d: interface %s, PNET ID %s by %s\n", d.Name, p.Number, p.NetDev, p.PNETID.ID, p.PNETID.Source)
			}
		}
	}
	// Output: mlx5_0 port 1: interface eth0, PNET ID NET1 by table
}
