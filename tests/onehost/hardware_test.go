// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestHardware runs tests of inside over the code for ISM devices of hardware, hw.c and hw_dibs.c, which no emulator has. Their driver's
// interface is there: a test module implements it as <linux/dibs.h> says, with a device that reaches itself. In the end it can be unloaded.
func TestHardware(t *testing.T) {
	lab.Need(t)
	parts := []string{"Hardware", "Sizes$|Chunks|Mixed$|Abort"}
	if lab.Full() {
		parts = append(parts, "SizesToTheEnd|MixedEach|ManyConnections", "Accepted|Corked|ListenActive|Deferred")
	}
	lt := start(t, "7.2", lab.LengthShort)
	// Link groups keep DMBs for as long as this.
	lt.Must("a", "modprobe smc_fake_dibs; sysctl -qw net.smc.loopback=0 net.smc.lgr_idle_time=1; smcd ueid add SMCKIT.LAB")
	if out := lt.Must("a", "smcd device"); !strings.Contains(out, "ism0") || !strings.Contains(strings.ToLower(out), "07c0") {
		t.Fatalf("the device is not on show:\n%s", out)
	}
	run(t, lt, parts)
	lt.Must("a", "timeout 20 sh -c 'until grep -qx 0 /sys/module/smc_fake_dibs/parameters/dmbs; do sleep 0.1; done'")
	lt.Must("a", "rmmod smc_fake_dibs")
	if out := lt.Must("a", "smcd device"); strings.Contains(out, "ism0") {
		t.Errorf("the device is still on show:\n%s", out)
	}
	unloads(t, lt)
}
