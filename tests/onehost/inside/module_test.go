// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// prompt is less than our module's timeout for a silent peer: whatever takes less has not waited for another handshake.
const prompt = 5 * time.Second

const unload = "rmmod smc_null smc_diag smc"

var local = netip.MustParseAddrPort("127.0.0.1:7100")

// TestModuleLoads loads and unloads the module repeatedly, immediately after its sockets were busy.
func TestModuleLoads(t *testing.T) {
	guest.UseNull(t, true)
	rounds := 3
	if guest.NullGuest.Full() {
		rounds = 100
	}
	for range rounds {
		guest.Run(t, unload)
		guest.Run(t, "modprobe smc_diag; modprobe smc_null; smcr ueid add SMCKIT.LAB")
		e := guest.NewEcho(t, local, 64)
		for range 3 {
			if err := guest.Ask(local, "some text", prompt); err != nil {
				t.Fatal(err)
			}
		}
		e.Close(t)
	}
}

// TestModuleInUse unloads the module while it has a socket, in each state: that is refused.
func TestModuleInUse(t *testing.T) {
	guest.UseNull(t, true)
	e := guest.NewEcho(t, local, 64)
	refuse := func(what string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "rmmod", "smc").CombinedOutput()
		if err == nil || !strings.Contains(string(out), "in use") {
			t.Errorf("%s: rmmod: %v: %s", what, err, out)
		}
	}
	guest.Run(t, "rmmod smc_null smc_diag")
	refuse("listening")
	fd, err := guest.Connect(local, prompt)
	if err != nil {
		t.Fatal(err)
	}
	refuse("connected, and listening")
	e.Shutdown(t)
	refuse("connected")
	unix.Close(fd)
	e.Wait(t, time.Minute)
	fresh, _, err := guest.Socket(local)
	if err != nil {
		t.Fatal(err)
	}
	refuse("fresh")
	unix.Close(fresh)
	guest.Run(t, "rmmod smc")
	guest.Run(t, "modprobe smc_diag; modprobe smc_null")
}

// TestModuleAutoload checks that the kernel loads the module when a program opens a socket.
func TestModuleAutoload(t *testing.T) {
	guest.UseNull(t, true)
	for _, s := range []struct {
		name                string
		family, kind, proto int
	}{
		{"AF_SMC", unix.AF_SMC, unix.SOCK_STREAM, 0},
		{"IPPROTO_SMC", unix.AF_INET, unix.SOCK_STREAM, 256},
		{"IPPROTO_SMC over IPv6", unix.AF_INET6, unix.SOCK_STREAM, 256},
	} {
		guest.Run(t, "for m in smc_null smc_diag smc; do ! grep -q \"^$m \" /proc/modules || rmmod $m; done")
		fd, err := unix.Socket(s.family, s.kind, s.proto)
		if err != nil {
			t.Errorf("%s: %v", s.name, err)
			continue
		}
		unix.Close(fd)
		if _, err := os.Stat("/sys/module/smc"); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	guest.Run(t, "modprobe smc_diag; modprobe smc_null")
}
