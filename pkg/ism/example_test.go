// SPDX-License-Identifier: Apache-2.0

package ism_test

import (
	"context"
	"fmt"
	"log"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/pnet"
)

// List the ports that SMC-R can use now, with their PNET IDs.
func ExampleScanner_Scan() {
	s := ism.Scanner{RDMA: ism.Netlink{}}
	if c, err := pnet.New(); err == nil {
		defer c.Close()
		s.PNET = c
	}
	inv, err := s.Scan(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range inv.Devices {
		for _, p := range d.Ports {
			if d.Kind == ism.KindRoCE && p.State == "ACTIVE" {
				fmt.Printf("%s port %d: interface %s, PNET ID %s by %s\n", d.Name, p.Number, p.NetDev, p.PNETID.ID, p.PNETID.Source)
			}
		}
	}
}
