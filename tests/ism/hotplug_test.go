// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestHotPlug gives hosts that run their devices, and takes them away, by commands to the emulators.
func TestHotPlug(t *testing.T) {
	onKernels(t, hotPlug)
}

func hotPlug(t *testing.T, kernel string) {
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 2, Fabric: lab.Fabric{Size: 64 << 20, Members: 2, HotPlug: []string{"a", "b"}}})
	address, echo := serve(lt, "echo", 5024)
	fallsBack(t, lt, address, "a and b")
	lt.PlugFabric("a")
	awaitMembers(lt, "a")
	fallsBack(t, lt, address, "b")
	plug(t, lt, "b")
	onlySMCDFrom(t, lt, address, 20)

	t.Run("server", func(t *testing.T) { hotUnplugged(t, lt, "b", "a") })
	t.Run("client", func(t *testing.T) { hotUnplugged(t, lt, "a", "b") })
	t.Run("sockets", func(t *testing.T) { socketsOutliveDevice(t, lt, address) })
	t.Run("no module", func(t *testing.T) { pluggedBeforeModule(t, lt) })
	lab.Kill(t, echo)
	for _, host := range []string{"a", "b"} {
		nothingUsed(t, lt, host)
		unloads(t, lt, host)
		lt.UnplugFabric(host)
	}
	awaitMembers(lt)
}

// plug gives a host its device, and waits until it and the other host are members.
func plug(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	lt.PlugFabric(host)
	awaitMembers(lt, "a", "b")
	if shown := lt.Must(host, "smcd device"); !strings.Contains(shown, device(lt, host)) {
		t.Errorf("host %s does not list its device: %s", host, shown)
	}
}

// hotUnplugged takes the device from a host under connections, and gives it another one.
func hotUnplugged(t *testing.T, lt *lab.Test, host, other string) {
	pci := device(lt, host)
	without(t, lt, host, func() { lt.UnplugFabric(host) }, func() {
		awaitMembers(lt, other)
		if shown := lt.Must(host, "smcd device"); strings.Contains(shown, pci) {
			t.Errorf("host %s lists a device that it has no more: %s", host, shown)
		}
	}, func() { plug(t, lt, host) })
}

// socketsOutliveDevice takes the device from a host whose program keeps its sockets, and so the mapping of the memory, until the next device
// is in use.
func socketsOutliveDevice(t *testing.T, lt *lab.Test, address string) {
	p := keep(t, lt, address, 10)
	lab.Suspend(t, p)
	lt.UnplugFabric("a")
	plug(t, lt, "a")
	onlySMCDFrom(t, lt, address, 20)
	lab.Kill(t, p)
	nothingUsed(t, lt, "a")
	onlySMCDFrom(t, lt, address, 20)
}

// pluggedBeforeModule takes and gives the device while a host has no module, which then finds it.
func pluggedBeforeModule(t *testing.T, lt *lab.Test) {
	unloads(t, lt, "a")
	lt.UnplugFabric("a")
	awaitMembers(lt, "b")
	lt.PlugFabric("a")
	setUpAgain(t, lt, "a")
	awaitMembers(lt, "a", "b")
	address, echo := serve(lt, "echo", 5025)
	defer lab.Kill(t, echo)
	onlySMCDFrom(t, lt, address, 20)
}
