// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/smckit/smckit/internal/fabric"
)

// Fabric is memory that all hosts of a lab share by ivshmem devices.
type Fabric struct {
	// Size is that of the memory in bytes, a power of two; without it there is no fabric.
	Size uint64
	// Members is how many there can be; 0 means as many as there are devices, and at least two.
	Members int
	// Devices is how many each host has, each of which is a member; 1 if zero.
	Devices int
	// HotPlug names hosts that have no device at first, but a port for one: see PlugFabric.
	HotPlug []string
}

// fabricServer serves the fabric of a lab.
type fabricServer struct {
	fabric *fabric.Fabric
	dir    string
	stop   context.CancelFunc
	served chan error
	// entrance is the socket that emulators connect to.
	entrance string
}

// serveFabric lays out the memory and waits for emulators.
func serveFabric(o Options) (*fabricServer, error) {
	members := max(o.Fabric.Members, o.Hosts*o.Fabric.Devices, 2)
	f, err := fabric.New(fabric.Config{Name: "lab", Size: o.Fabric.Size, Members: members})
	if err != nil {
		return nil, err
	}
	s := &fabricServer{fabric: f, served: make(chan error, 1)}
	if s.dir, err = os.MkdirTemp("", "smckit-fabric-"); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: s.socket(), Net: "unix"})
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.RemoveAll(s.dir))
	}
	ctx, stop := context.WithCancel(context.Background())
	s.stop, s.entrance = stop, s.socket()
	go func() { s.served <- f.Serve(ctx, l) }()
	return s, nil
}

func (s *fabricServer) socket() string { return filepath.Join(s.dir, "socket") }

func (s *fabricServer) close() error {
	if s == nil {
		return nil
	}
	s.stop()
	return errors.Join(<-s.served, s.fabric.Close(), os.RemoveAll(s.dir))
}

// EndFabric ends the server of the fabric as if it were killed: the connections of the hosts' emulators to it end, and it changes nothing in
// the memory.
func (lt *Test) EndFabric() {
	lt.t.Helper()
	f := lt.fabric
	lt.fabric = nil
	if err := f.close(); err != nil {
		lt.t.Fatal(err)
	}
}

// ServeFabric starts another server after EndFabric, with another memory. Hosts that boot from now on use that one.
func (lt *Test) ServeFabric() {
	lt.t.Helper()
	var err error
	if lt.fabric, err = serveFabric(lt.options); err != nil {
		lt.t.Fatal(err)
	}
}

// addFabric gives a host its devices, or a port for one that comes later.
func (h *Host) addFabric(s *machineSpec, server *fabricServer, o Fabric) error {
	if slices.Contains(o.HotPlug, h.Name) {
		s.qemu = append(s.qemu, HotPlugPort(plugPort, o.Size)...)
		return h.addMonitor(s)
	}
	for i := range o.Devices {
		s.qemu = append(s.qemu, IvshmemDevice("fabric"+strconv.Itoa(i), server.entrance)...)
	}
	return nil
}

// IvshmemDevice returns the arguments of QEMU for a member of the fabric that is served at a path.
func IvshmemDevice(id, path string) []string {
	return []string{"-chardev", "socket,id=" + id + ",path=" + path, "-device", fmt.Sprintf("ivshmem-doorbell,chardev=%s,vectors=%d", id, fabric.Vectors)}
}
