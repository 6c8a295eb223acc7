// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/fabric"
	"github.com/smckit/smckit/internal/lab"
)

// TestKilledWhileJoining kills the emulator of a host after each message by which it joins, and when its module has just joined. Connections of
// the others go on, and so do those with the host when it has joined at last.
func TestKilledWhileJoining(t *testing.T) {
	onKernels(t, killedWhileJoining)
}

func killedWhileJoining(t *testing.T, kernel string) {
	const members = 4
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 3, Fabric: lab.Fabric{Size: 32 << 20, Members: members}})
	address, echo := serve(lt, "echo", 5021)
	p := keep(t, lt, address, 4)
	// The version, the number, the memory, and the doorbells.
	for messages := range 3 + members*fabric.Vectors + 1 {
		if messages == 0 {
			lt.Crash("c")
		}
		awaitMembers(lt, "a", "b")
		lt.CrashWhileJoining("c", messages)
	}
	awaitMembers(lt, "a", "b")
	onlySMCDFrom(t, lt, address, 20)

	lt.Restart("c")
	if err := lt.InstallSMC(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.StartIn("c", "", "modprobe", "smc")
	awaitMembers(lt, "a", "b", "c")
	lt.Crash("c")
	awaitMembers(lt, "a", "b")
	onlySMCDFrom(t, lt, address, 20)

	restart(t, lt, "c")
	awaitMembers(lt, "a", "b", "c")
	before := lt.Counters("c")
	lt.Must("c", "smcflow check --conns 10 --size 100000 "+address)
	if now := lt.Counters("c"); now.Connections.ClientV2-before.Connections.ClientV2 != 10 {
		t.Errorf("connections of c are not SMC-D: %+v", now)
	}
	lab.Stop(t, p)
	lab.Kill(t, echo)
	for _, host := range []string{"a", "b", "c"} {
		nothingUsed(t, lt, host)
		unloads(t, lt, host)
	}
}

// awaitMembers waits until these hosts, by their names, and no others are members that use the fabric.
func awaitMembers(lt *lab.Test, names ...string) {
	lt.AwaitFabric("the members "+strings.Join(names, ", "), func(s fabric.Status) bool {
		var there []string
		for _, m := range s.Members {
			if m.ExtGID == 0 || m.Removed {
				return false
			}
			there = append(there, m.Host)
		}
		slices.Sort(there)
		return slices.Equal(there, names)
	})
}
