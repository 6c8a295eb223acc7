// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/smckit/smckit/pkg/pnet"
)

// Mistakes in a table file have a place.
func ExampleParse() {
	const file = `# fabric A
add fabricA eth eth4
add fabricA ib mlx4_0 3
`
	_, err := pnet.Parse(strings.NewReader(file), "smc_pnet.conf")
	fmt.Println(err)
	// Output: smc_pnet.conf:3:23: port "3": an RDMA device has ports 1 to 2
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

// The table of the kernel is made what a file says.
func ExampleApply() {
	f, err := os.Open("/etc/smc/pnet.conf")
	if err != nil {
		log.Fatal(err)
	}
	wanted, err := pnet.Parse(f, f.Name())
	if err != nil {
		log.Fatal(err)
	}
	c, err := pnet.New()
	if errors.Is(err, os.ErrNotExist) {
		log.Fatal("no SMC here")
	}
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	ctx := context.Background()
	current, err := c.List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if err := pnet.Apply(ctx, c, pnet.Diff(current, wanted)); err != nil {
		log.Fatal(err)
	}
}

func ExampleDecodeUtilString() {
	utilString := []byte("\xd5\xc5\xe3\xf1\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40" + strings.Repeat("\x00", 48))
	fmt.Printf("%q\n", pnet.DecodeUtilString(utilString))
	// Output: ["NET1" "" "" ""]
}
