// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// NativeArch is the architecture of guests unless the options name another one.
const NativeArch = "amd64"

// architecture describes the guests of one architecture. Each name is one that Debian gives to a kernel; two of them may differ
// only in the size of a page.
type architecture struct {
	name    string // the end of the names of Debian's kernel packages
	debian  string // Debian's name of the architecture, and Go's
	triplet string // the prefix of its compiler's packages
	kbuild  string // Linux's name of it
	machine elf.Machine
	lacks   []string // the kernel series that Debian does not have for it

	emulator string   // QEMU's program
	packages []string // that have it and its firmware
	// goodMajor and goodMinor are the first version of QEMU that runs such guests reliably.
	goodMajor, goodMinor int

	board      string // QEMU's machine
	cpu        string
	bus        string   // the end of the names of virtio devices
	console    []string // connects QEMU's character device "console"
	tty        string   // that console in the guest
	options    string   // of the kernel, besides kernelOptions
	cmdline    int      // the maximum length of the kernel's command line
	compressed bool     // the emulator boots a vmlinuz as it is
	bigEndian  bool
	// asynchronous means that network interfaces appear some time after their driver was loaded, in any order.
	asynchronous bool
}

var serialConsole = []string{"-serial", "chardev:console"}

var architectures = []*architecture{
	{
		name: NativeArch, debian: NativeArch, triplet: "x86_64-linux-gnu", kbuild: "x86", machine: elf.EM_X86_64,
		emulator: "qemu-system-x86_64",
		packages: []string{"qemu-system-x86", "qemu-system-data", "seabios"},
		// QEMU before 8.1 may go on executing a page's old translation while another processor writes to that page. Kernels
		// patch themselves all the time, by way of a breakpoint. Guests with two processors then die of an "Oops: int3": in one
		// of about a hundred boots, and within seconds where something toggles static keys.
		goodMajor: 8, goodMinor: 1,
		board: "q35,usb=off,vmport=off,hpet=off,sata=off,smbus=off",
		// Disable five-level page tables: they take time, and KASAN in 7.2 reports false errors before it is set up for them.
		// Emulated string instructions are slow, as each byte is a step: kernels that do not see their features copy by words.
		cpu: "max,la57=off,erms=off,fsrm=off", bus: "pci", console: serialConsole, tty: "ttyS0",
		options: "no_timer_check tsc=reliable", cmdline: 2047,
	},
	{
		name: "s390x", debian: "s390x", triplet: "s390x-linux-gnu", kbuild: "s390", machine: elf.EM_S390,
		emulator: "qemu-system-s390x",
		packages: []string{"qemu-system-s390x", "qemu-system-data"},
		// QEMU 7.2 computes the checksums of TCP wrong.
		goodMajor: 10, goodMinor: 0,
		board: "s390-ccw-virtio", cpu: "max", bus: "ccw",
		console: []string{"-device", "sclpconsole,chardev=console"}, tty: "ttysclp0",
		cmdline: 895, compressed: true, bigEndian: true, asynchronous: true,
	},
	arm64("arm64"),
	arm64("arm64-16k", "6.1"),
}

// arm64 returns the description of one of Debian's kernels for arm64.
func arm64(name string, lacks ...string) *architecture {
	return &architecture{
		name: name, debian: "arm64", triplet: "aarch64-linux-gnu", kbuild: "arm64", machine: elf.EM_AARCH64,
		lacks: lacks, emulator: "qemu-system-aarch64",
		packages:  []string{"qemu-system-arm", "qemu-system-data"},
		goodMajor: 8, goodMinor: 1,
		// The authentication of pointers, which newer processors have, takes most of the time of an emulated one.
		board: "virt", cpu: "cortex-a76", bus: "pci", console: serialConsole, tty: "ttyAMA0", cmdline: 2047,
	}
}

// findArch returns the description of an architecture; an empty name is NativeArch.
func findArch(name string) (*architecture, error) {
	if name == "" {
		name = NativeArch
	}
	i := slices.IndexFunc(architectures, func(a *architecture) bool { return a.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no architecture %q: choose one of %s", name, strings.Join(Archs(), ", "))
	}
	return architectures[i], nil
}

// Archs lists the architectures that guests can have.
func Archs() []string {
	var list []string
	for _, a := range architectures {
		list = append(list, a.name)
	}
	return list
}

// ArchSeries lists the kernel series that Debian has for an architecture, oldest first.
func ArchSeries(arch string) []string {
	a, err := findArch(arch)
	if err != nil {
		return nil
	}
	return names(func(s kernelSeries) bool { return !slices.Contains(a.lacks, s.name) })
}

// native reports whether guests of this architecture run the programs of this machine.
func (a *architecture) native() bool { return a.name == NativeArch }

// suffix is what the names of files in the cache have in addition if they are for this architecture.
func (a *architecture) suffix() string {
	if a.native() {
		return ""
	}
	return "-" + a.name
}

// arch returns the architecture of a kernel.
func (k *Kernel) arch() *architecture {
	if a, err := findArch(k.Arch); err == nil {
		return a
	}
	return architectures[0]
}
