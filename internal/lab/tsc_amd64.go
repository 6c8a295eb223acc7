// SPDX-License-Identifier: Apache-2.0

//go:build linux && amd64

package lab

import (
	"sync"
	"time"
)

// readTSC reads this processor's time stamp counter.
func readTSC() uint64

// tscKHz is the frequency of the TSC in kHz. Emulated processors of the same kind have the same counter.
//
// A guest that measures the frequency uses its interval timer, which the emulator serves late on a busy machine: the guest's
// clocks then run several times too fast, and everything with a deadline fails.
var tscKHz = sync.OnceValue(func() int64 {
	const window = 50 * time.Millisecond
	tsc, at := sampleTSC()
	time.Sleep(window)
	tscLater, later := sampleTSC()
	return int64(tscLater-tsc) * int64(time.Millisecond) / int64(later.Sub(at))
})

// sampleTSC reads the counter and the time at once: of some attempts, that which was interrupted least.
func sampleTSC() (tsc uint64, at time.Time) {
	least := time.Hour
	for range 16 {
		before := time.Now()
		now := readTSC()
		if took := time.Since(before); took < least {
			least, tsc, at = took, now, before.Add(took/2)
		}
	}
	return tsc, at
}
