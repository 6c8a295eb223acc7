// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"os"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestHardware runs tests of inside over the code for ISM devices of hardware, hw.c and hw_dibs.c or hw_ism.c, which no emulator has. A test
// module has a device that reaches itself, and implements the interface of its driver: on 7.2 dibs, on 6.12 that of the ISM driver itself.
// In the end it is unloaded while connections use the device, and leaves nothing.
func TestHardware(t *testing.T) {
	lab.Need(t)
	kernels := []string{"6.12", lab.Newest()}
	if os.Getenv("SMCKIT_KERNELS") == lab.DebugSeries {
		kernels = []string{lab.DebugSeries}
	}
	for _, kernel := range kernels {
		t.Run(kernel, func(t *testing.T) { hardware(t, kernel) })
	}
}

func hardware(t *testing.T, kernel string) {
	parts := []string{"Hardware"}
	if lab.Full() || kernel == lab.Newest() {
		parts = append(parts, "Sizes$|Chunks|Mixed$|Abort") // hw.c is the same on all kernels
	}
	if lab.Full() {
		parts = append(parts, "SizesToTheEnd|MixedEach|ManyConnections", "Accepted|Corked|ListenActive|Deferred")
	}
	lt := start(t, kernel, lab.LengthShort)
	// Link groups keep DMBs for as long as this.
	lt.Must("a", "modprobe smc_fake_ism; sysctl -qw net.smc.loopback=0 net.smc.lgr_idle_time=1; smcd ueid add SMCKIT.LAB")
	if out := lt.Must("a", "smcd device"); !strings.Contains(out, "ism0") || !strings.Contains(strings.ToLower(out), "07c0") {
		t.Fatalf("the device is not on show:\n%s", out)
	}
	run(t, lt, parts)
	lt.Must("a", "timeout 20 sh -c 'until grep -qx 0 /sys/module/smc_fake_ism/parameters/dmbs; do sleep 0.1; done'")
	// The module warns if the client leaves DMBs or data of its own to the driver.
	lt.GoTest(t, "a", inside, "^TestUnloadHardware")
	if out := lt.Must("a", "smcd device"); strings.Contains(out, "ism0") {
		t.Errorf("the device is still on show:\n%s", out)
	}
	unloads(t, lt)
}
