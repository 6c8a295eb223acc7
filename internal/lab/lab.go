// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package lab boots guests with real distribution kernels under QEMU, joins them by wires, and runs programs in them.
//
// A guest sees this machine's files below a writable layer of its own, so that it can run every program installed here. Each
// wire of the network is a Go value that can be cut. Guests live no longer than the process that has started them, however that
// ends, and leave nothing behind.
//
// Programs and their results use a separate channel, never the console. A test fails if the kernel of a guest reports an Oops,
// a warning, or a finding of lockdep, KASAN and the like, even if the test itself passes:
//
//	lt := lab.StartSMC(t, lab.Options{Kernel: "6.12", Hosts: 2})
//	lt.Must("b", "smcflow sink 0.0.0.0:5001 >/dev/null 2>&1 &")
//	res := lt.Run("a", "smcss", "-a")
//
// Environment: SMCKIT_LAB lets tests boot guests at all; SMCKIT_CACHE moves the cache; SMCKIT_MIRROR names a Debian
// archive where apt's own sources name none; SMCKIT_ARTIFACTS is where a failed test leaves kernel logs and consoles;
// SMCKIT_KERNELS names the kernel series that tests run on, with commas, where they run on several;
// SMCKIT_PLACES is how many packages test at a time, each on processors of its own;
// SMCKIT_ACCEL chooses QEMU's accelerator (tcg); SMCKIT_SLOW multiplies all deadlines (4 under emulation).
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Options describe the lab to boot. The zero value is one host with one network interface and kernel DefaultSeries().
type Options struct {
	// Kernel is the series, for example "6.12"; Kernels gives each host its own.
	Kernel  string
	Kernels []string
	// Arch is the architecture of the hosts, one of Archs(), or else NativeArch; Archs gives each host its own. A host of another
	// architecture than this machine's sees this machine's files below those of a small Debian system for its own.
	Arch  string
	Archs []string
	// Disk is a system that the hosts boot, instead of this machine's files with a kernel of the cache.
	Disk *Disk
	// Hosts is the number of guests, named a, b, …; 1 if zero.
	Hosts int
	// Wires is the number of network segments; each host has an interface (eth0, eth1, …) on every one. 1 if zero.
	Wires int
	// Memory in MiB and processors of each guest; 768, or 1024 with a disk, and 1 if zero. With a debug kernel guests get
	// twice the memory, and 2048 MiB at least.
	Memory, CPUs int
	// Fabric is memory that the hosts share.
	Fabric Fabric
	// CountedTime makes the guests' clocks advance by instructions instead of seconds, as long as a processor is busy.
	// Measurements in guests then do not depend on the load of this machine. It needs emulation, and is slower; several
	// processors take turns on one of this machine's.
	CountedTime bool
	// Reboots has a kernel that reboots or crashes boot again in the same emulator, which ends otherwise.
	Reboots bool
	// Shares are directories that guests may write to, at the same path.
	Shares []string
	// KernelArgs are added to the kernel's command line.
	KernelArgs string
	// Programs are directories put in front of the PATH of guests that run the programs of this machine. If there are any,
	// other guests have our commands, built for their architecture.
	Programs []string
	// Progress is called for each step that takes time; may be nil.
	Progress func(string)

	cpus *unix.CPUSet // of this machine, that the emulators run on; nil for all
}

// Lab is a set of running guests.
type Lab struct {
	Hosts []*Host
	Wires []*Wire

	options Options
	fabric  *fabricServer // nil if there is none
	closed  atomic.Bool
}

// completeHosts sets the number of hosts and wires, and each host's kernel and architecture, where the caller has not.
func (o *Options) completeHosts() {
	if o.Hosts == 0 {
		o.Hosts = max(1, len(o.Kernels))
	}
	if o.Kernel == "" {
		o.Kernel = DefaultSeries()
	}
	for len(o.Kernels) < o.Hosts {
		o.Kernels = append(o.Kernels, o.Kernel)
	}
	for len(o.Archs) < o.Hosts {
		o.Archs = append(o.Archs, o.Arch)
	}
	if o.Wires == 0 {
		o.Wires = 1
	}
}

// completeSizes does the same for the memory, the processors and the fabric.
func (o *Options) completeSizes() {
	if o.Memory == 0 {
		o.Memory = 768
		if o.Disk != nil {
			o.Memory = 1024
		}
	}
	if slices.Contains(o.Kernels, DebugSeries) {
		o.Memory = max(2*o.Memory, 2048)
	}
	if o.CPUs == 0 {
		o.CPUs = 1
	}
	if o.Fabric.Devices == 0 {
		o.Fabric.Devices = 1
	}
	if o.Fabric.Size > 0 {
		o.CPUs = max(o.CPUs, 2) // for a single processor, the emulator leaves out the barriers that guests need among themselves
	}
}

// shareable returns the absolute path of a directory that hosts can share.
func shareable(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	if st, err := os.Stat(abs); err != nil || !st.IsDir() {
		return "", fmt.Errorf("cannot share %s: not a directory", dir)
	}
	if strings.ContainsAny(abs, ", :") {
		return "", fmt.Errorf("cannot share %s: a comma, a colon or a blank in the path", dir)
	}
	return abs, nil
}

// complete sets what the caller has not, and checks what it has.
func (o *Options) complete() error {
	o.completeHosts()
	o.completeSizes()
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Hosts > 26 {
		return fmt.Errorf("%d hosts: at most 26 have a name", o.Hosts)
	}
	if o.Disk != nil && o.Arch != "" {
		return errors.New("a disk has a system for this machine's architecture: its hosts cannot have another one")
	}
	if o.Disk != nil && len(o.Shares) > 0 {
		return errors.New("hosts that boot from a disk see nothing of this machine: no directory can be shared with them")
	}
	for i, dir := range o.Shares {
		abs, err := shareable(dir)
		if err != nil {
			return err
		}
		o.Shares[i] = abs
	}
	return nil
}

// New boots a lab and returns when every guest can run programs. Close ends it, and so does the end of this process.
func New(ctx context.Context, o Options) (*Lab, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	l := &Lab{options: o}
	if err := l.prepare(ctx); err != nil {
		return nil, err
	}
	if err := l.boot(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) boot(ctx context.Context) error {
	for range l.options.Wires {
		w, err := newWire(l.options.Hosts)
		if err != nil {
			return err
		}
		l.Wires = append(l.Wires, w)
	}
	if l.options.Fabric.Size > 0 {
		var err error
		if l.fabric, err = serveFabric(l.options); err != nil {
			return err
		}
	}
	group, gctx := errgroup.WithContext(ctx)
	for _, h := range l.Hosts {
		group.Go(func() error { return h.boot(gctx) })
	}
	return group.Wait()
}

// Host returns the host with the given name, or nil.
func (l *Lab) Host(name string) *Host {
	for _, h := range l.Hosts {
		if h.Name == name {
			return h
		}
	}
	return nil
}

// Close kills all guests. It may be called twice.
func (l *Lab) Close() error {
	l.closed.Store(true)
	var err error
	for _, h := range l.Hosts {
		h.stop()
	}
	for _, w := range l.Wires {
		err = errors.Join(err, w.close())
	}
	f := l.fabric
	l.fabric = nil
	return errors.Join(err, f.close())
}

// slow is the factor by which deadlines are longer than on real hardware.
var slow = sync.OnceValue(func() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("SMCKIT_SLOW")); err == nil && n > 0 {
		return time.Duration(n)
	}
	if accelerator() == "tcg" {
		return 4
	}
	return 1
})

// Scale stretches a deadline that is right for real hardware to the speed of emulation, or by $SMCKIT_SLOW.
func Scale(d time.Duration) time.Duration { return slow() * d }
