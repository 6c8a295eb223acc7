// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"testing"

	"github.com/smckit/smckit/tests/guest"
)

// TestPeersHonest has peers that do all as they should, in both roles: what the others do wrong is only what they mean to.
func TestPeersHonest(t *testing.T) {
	n := openNetwork(t)
	for i, server := range []bool{false, true} {
		name := "client"
		if server {
			name = "server"
		}
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			g := newGroup(t, n, address(1, byte(i+1)), server)
			first, err := g.open(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got := guest.Run(t, "smcss --state active"); !contains(got, "SMCR", g.addr.String()) {
				t.Errorf("the connection is not SMC-R: %s", got)
			}
			// Around the rings more than once, in both.
			for _, sizes := range [][]int{{1, 1000, 65536, 100_000}, {77}} {
				c, err := g.open(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for _, size := range sizes {
					if err := c.exchange(ctx, size); err != nil {
						t.Fatalf("%d bytes: %v", size, err)
					}
				}
				if err := c.close(ctx); err != nil {
					t.Fatal(err)
				}
				if err := first.exchange(ctx, 5000); err != nil {
					t.Fatal(err)
				}
			}
			if err := first.close(ctx); err != nil {
				t.Fatal(err)
			}
		})
	}
}
