// SPDX-License-Identifier: Apache-2.0

package smcstats_test

import (
	"fmt"

	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/smcstats"
)

// A reset of the counters is a reading to subtract from later ones. With a client of netlinksmc, Collect makes them.
func ExampleSub() {
	before := &smcstats.Snapshot{Stats: netlinksmc.Stats{SMCR: netlinksmc.TechStats{ClientV2: 40}}}
	now := &smcstats.Snapshot{
		Stats: netlinksmc.Stats{SMCR: netlinksmc.TechStats{ClientV2: 42}},
		Fallback: netlinksmc.FallbackStats{
			Client:      []netlinksmc.FallbackCount{{Reason: netlinksmc.ReasonPeerNoSMC, Count: 3}},
			ClientTotal: 3,
		},
	}
	since, err := smcstats.Sub(now, before)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(smcstats.Connections(&since.SMCR), "connections over SMC-R,", since.Fallbacks(), "over TCP")
	for _, f := range since.Fallback.Client {
		fmt.Printf("%d: %s\n", f.Count, f.Reason.Text())
	}
	// Output:
	// 2 connections over SMC-R, 3 over TCP
	// 3: the other side did not signal SMC in the TCP handshake
}
