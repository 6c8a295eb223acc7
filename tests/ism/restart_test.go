// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/smckit/smckit/internal/lab"
)

// TestCrashedHost kills the emulator of a host: the connections of its peer end at once. When it has booted again, they use SMC-D.
func TestCrashedHost(t *testing.T) {
	onKernels(t, crashedHost)
}

func crashedHost(t *testing.T, kernel string) {
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 2, Fabric: lab.Fabric{Size: 16 << 20, Members: 2}})
	address, _ := serve(lt, "echo", 5016)
	p := keep(t, lt, address, 10)
	lt.Crash("b")
	fails(t, p)
	nothingUsed(t, lt, "a")
	// The fabric has no other number than the one that it had before.
	restart(t, lt, "b")
	address, _ = serve(lt, "echo", 5016)
	onlySMCDFrom(t, lt, address, 20)
	unloads(t, lt, "a")
}

// restart boots a host that has crashed, and gives it what boot() has given it.
func restart(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	lt.Restart(host)
	setUpAgain(t, lt, host)
}

// setUpAgain gives a host that has booted again what boot() has given it.
func setUpAgain(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	i := slices.Index(lt.Hosts, lt.Host(host))
	modules := slices.Repeat([]lab.Module{lab.ModuleNone}, len(lt.Hosts))
	modules[i] = lab.ModuleOurs
	if err := lt.LoadSMC(t.Context(), modules...); err != nil {
		t.Fatal(err)
	}
	setUp(lt, i)
}

// onlySMCDFrom makes connections from a to b, which are of SMC-D.
func onlySMCDFrom(t *testing.T, lt *lab.Test, address string, n int) {
	t.Helper()
	before := counters(lt)
	lt.Must("a", fmt.Sprintf("smcflow check --conns %d --size 100000 %s", n, address))
	onlySMCD(t, lt, before, n)
}

// TestServerGone ends the server of the fabric, and starts one with another memory, as systemd does not. Members go on among themselves. Full
// runs also replace the members: first one, with which the other can use TCP only, then both.
func TestServerGone(t *testing.T) {
	onKernels(t, serverGone)
}

func serverGone(t *testing.T, kernel string) {
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 2, Fabric: lab.Fabric{Size: 16 << 20, Members: 4}})
	address, echo := serve(lt, "echo", 5017)
	p := keep(t, lt, address, 4)
	lt.EndFabric()
	onlySMCDFrom(t, lt, address, 20)
	lt.ServeFabric()
	onlySMCDFrom(t, lt, address, 20)
	if lab.Full() {
		membersGo(t, lt, p, address)
		return
	}
	lab.Stop(t, p)
	lab.Kill(t, echo)
	nothingUsed(t, lt, "a")
	nothingUsed(t, lt, "b")
}

// membersGo replaces the members of a fabric whose server has ended. No one clears the GID of b, so a waits for its beat for a minute.
func membersGo(t *testing.T, lt *lab.Test, p *lab.Process, address string) {
	crashed := time.Now()
	lt.Crash("b")
	failsWithin(t, p, 3*time.Minute)
	t.Logf("the connections ended after %v", time.Since(crashed))
	nothingUsed(t, lt, "a")
	restart(t, lt, "b")
	serve(lt, "echo", 5017)
	before := counters(lt)
	lt.Must("a", "smcflow check --size 100000 "+address)
	for i, now := range counters(lt) {
		if fell := now.FellBack() - before[i].FellBack(); fell != 1 {
			t.Errorf("host %c: %d connections of members of different fabrics fell back, want 1: %+v", 'a'+i, fell, now)
		}
	}
	lt.Crash("a")
	restart(t, lt, "a")
	onlySMCDFrom(t, lt, address, 20)
}
