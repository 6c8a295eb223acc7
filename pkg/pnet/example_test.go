// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/smckit/smckit/internal/pnettest"
	"github.com/smckit/smckit/pkg/pnet"
)

// Mistakes in a table file have a place.
func ExampleParse() {
	const file = `# fabric A
add fabricA eth eth4
add fabricA ib mlx4_0 3
`
	_, err := pnet.Parse(strings.NewReader(file), "pnet.conf")
	fmt.Println(err)
	// Output: pnet.conf:3:23: port "3": an RDMA device has ports 1 to 2
}

// A device can be taken out of a PNET ID only together with the others, which are added again.
func ExampleDiff() {
	current := pnet.Table{{ID: "NET1", Eth: "eth0"}, {ID: "NET1", IB: "mlx4_0", Port: 1}}
	wanted := pnet.Table{{ID: "NET1", IB: "mlx4_0", Port: 1}}
	for _, step := range pnet.Diff(current, wanted).Steps {
		if step.Delete {
			fmt.Println("delete", step.Entry.ID)
		} else {
			fmt.Println("add", step.Entry)
		}
	}
	// Output:
	// delete NET1
	// add NET1 ib mlx4_0 1
}

// Make the table of the kernel what a file says. Here a fake answers for the kernel; on a host, New opens a Client.
func ExampleApply() {
	kernel := &pnettest.Kernel{Rows: []pnettest.Row{pnettest.Eth("OLD", "eth0")}}
	c, err := pnet.NewFromConn(kernel.Dial())
	if errors.Is(err, pnet.ErrNoModule) {
		fmt.Println("no SMC here")
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = c.Close() }()

	const file = "add NET1 eth eth0\nadd NET1 ib mlx4_0 1\n"
	wanted, err := pnet.Parse(strings.NewReader(file), "pnet.conf")
	if err != nil {
		log.Print(err)
		return
	}
	ctx := context.Background()
	current, err := c.List(ctx)
	if err != nil {
		log.Print(err)
		return
	}
	plan := pnet.Diff(current, wanted)
	if err := pnet.Apply(ctx, c, plan); err != nil {
		log.Print(err)
		return
	}
	fmt.Println("removed", plan.Removed, "added", plan.Added)
	// Output: removed [OLD eth eth0] added [NET1 eth eth0 NET1 ib mlx4_0 1]
}

// Decode what firmware has set for the four ports of a device.
func ExampleDecodeUtilString() {
	utilString := []byte("\xd5\xc5\xe3\xf1\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40" + strings.Repeat("\x00", 48))
	fmt.Printf("%q\n", pnet.DecodeUtilString(utilString))
	// Output: ["NET1" "" "" ""]
}
