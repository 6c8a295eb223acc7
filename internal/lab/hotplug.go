// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/smckit/smckit/internal/fabric"
)

// The names that a device of a fabric which comes later, and the port for it, have in the emulator.
const (
	pluggedID = "fabric0"
	plugPort  = "port0"
)

// heldMore is for numbers in the emulator that are free besides those of the doorbells.
const heldMore = 32

// HotPlugPort returns the arguments of QEMU for a port to which a device can be added while a guest runs. The port reserves addresses for
// the memory of a fabric, twice as many as it has: it has to begin at a multiple of its size, and the addresses of the port need not.
func HotPlugPort(id string, size uint64) []string {
	return []string{"-device", "pcie-root-port,id=" + id + ",chassis=1,pref64-reserve=" + strconv.FormatUint(2*size>>20, 10) + "M"}
}

// PlugCommands returns the commands that make a running guest a member of the fabric that is served at a path.
func PlugCommands(id, chardev, path, port string) []MonitorCommand {
	type dict = map[string]any
	backend := dict{"type": "socket", "data": dict{"server": false, "addr": dict{"type": "unix", "data": dict{"path": path}}}}
	return []MonitorCommand{
		{"chardev-add", dict{"id": chardev, "backend": backend}},
		{"device_add", dict{"driver": "ivshmem-doorbell", "id": id, "chardev": chardev, "vectors": fabric.Vectors, "bus": port}},
	}
}

// UnplugCommands returns the commands that undo PlugCommands. The second one has to wait until the guest has released the device, which the
// event DEVICE_DELETED reports.
func UnplugCommands(id, chardev string) []MonitorCommand {
	return []MonitorCommand{
		{"device_del", map[string]any{"id": id}},
		{"chardev-remove", map[string]any{"id": chardev}},
	}
}

// PlugFabric gives a host of Fabric.HotPlug its device. The host's kernel finds it some time later.
func (lt *Test) PlugFabric(host string) {
	lt.t.Helper()
	lt.monitor(host, func(ctx context.Context, m *monitor) error {
		return m.run(ctx, PlugCommands(pluggedID, pluggedID, lt.fabric.socket(), plugPort)...)
	})
}

// UnplugFabric takes the device from a host after PlugFabric: first the host's kernel has to release it, then it is no member any more.
//
// QEMU 10.0 closes the doorbells of a device that goes, but goes on watching the numbers of those that were the device's own, unless KVM delivers
// the interrupts. When such a number is that of another file which can be read, it uses memory that it has freed. So these numbers are not left
// to other files.
func (lt *Test) UnplugFabric(host string) {
	lt.t.Helper()
	lt.monitor(host, func(ctx context.Context, m *monitor) error {
		del := UnplugCommands(pluggedID, pluggedID)
		if err := m.run(ctx, del[0]); err != nil {
			return err
		}
		if err := m.await(ctx, "DEVICE_DELETED", pluggedID); err != nil {
			return err
		}
		if err := m.hold(ctx, lt.fabric.fabric.Status().Limit*fabric.Vectors+heldMore); err != nil {
			return err
		}
		return m.run(ctx, del[1])
	})
}

// monitor has do use the monitor of a host.
func (lt *Test) monitor(host string, do func(context.Context, *monitor) error) {
	lt.t.Helper()
	h := lt.Host(host)
	if h.monitor == nil {
		lt.t.Fatalf("guest %s has no port for a device: name it in Fabric.HotPlug", host)
	}
	ctx, cancel := context.WithTimeout(lt.t.Context(), Scale(10*time.Second))
	defer cancel()
	if err := do(ctx, h.monitor); err != nil {
		lt.t.Fatal(fmt.Errorf("guest %s: %w", host, err))
	}
}
