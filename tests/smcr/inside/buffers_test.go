// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/smckit/smckit/tests/guest"
)

// TestPeersHonestScarce has connections, one after the other, ask for more than can be had in one piece: what the first ones got,
// the next ones take, though it is not what they ask for.
func TestPeersHonestScarce(t *testing.T) {
	const conns, together = 12, 4
	// Pieces of 4 MiB are the largest that the kernel has.
	guests.Set(t, "net.smc.rmem", "16777216")
	guests.Set(t, "net.smc.wmem", "16777216")
	n := openNetwork(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	g := newGroup(t, n, address(1, 11), false)
	rmbs := map[uint64]bool{}
	for range conns {
		c, err := g.open(ctx)
		if err == nil {
			err = c.exchange(ctx, 1000)
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.size > 4<<20 {
			t.Fatalf("an RMB of %d bytes: nothing is scarce here", c.size)
		}
		rmbs[c.them.RMB] = true
		if err := c.close(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// One may not be back yet when the next connection comes; never all.
	if len(rmbs) > together {
		t.Errorf("%d connections after each other had %d RMBs", conns, len(rmbs))
	}
	if bytes := ringBytes(t); bytes == 0 || bytes > together*4<<20 {
		t.Errorf("%d connections after each other have left rings of %d bytes", conns, bytes)
	}
}

// ringBytes is how much all groups have to send from.
func ringBytes(t *testing.T) (sum int) {
	t.Helper()
	var answer struct {
		Linkgroups []struct {
			Sndbuf int `json:"sndbuf_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(guest.Run(t, "smcr linkgroup link-show --json")), &answer); err != nil {
		t.Fatal(err)
	}
	for _, g := range answer.Linkgroups {
		sum += g.Sndbuf
	}
	return sum
}
