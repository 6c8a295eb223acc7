// SPDX-License-Identifier: Apache-2.0

//go:build linux

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
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// Disk is a system that guests boot from their own disks, which are initially copies of it. It has its own kernel and its own
// process 1, and the guest's files survive reboots. It contains no files of this machine.
type Disk struct {
	kernel *Kernel
	image  *os.File // an ext4 file system without a name, so that nothing is left behind
}

// bootPackages are the packages that a Debian system with systemd needs to boot.
var bootPackages = []string{"systemd-sysv", "udev", "kmod", "iproute2", "linux-image-amd64"}

// NewMachine returns a bootable Debian system from which to make a Disk.
func NewMachine(t testing.TB, suite string, packages ...string) *Debian {
	t.Helper()
	d := NewDebian(t, suite, slices.Concat(bootPackages, packages)...)
	// Each copy becomes a machine of its own.
	if err := os.Truncate(filepath.Join(d.Dir, "etc/machine-id"), 0); err != nil {
		t.Fatal(err)
	}
	return d
}

// Disk makes a disk from a system, which must come from NewMachine.
func (d *Debian) Disk() *Disk {
	d.t.Helper()
	ctx := d.t.Context()
	kernel, err := systemKernel(ctx, d.Dir, d.t.TempDir())
	if err != nil {
		d.t.Fatal(err)
	}
	image, err := nameless()
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { image.Close() })
	used, err := output(ctx, "du", "-sm", d.Dir)
	if err != nil {
		d.t.Fatal(err)
	}
	size, err := strconv.Atoi(strings.Fields(used)[0])
	if err != nil {
		d.t.Fatal(err)
	}
	// By default, mke2fs leaves this work to the guest, where it would disturb tests.
	err = run(ctx, "mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0,lazy_journal_init=0", "-d", d.Dir,
		pathOf(image), fmt.Sprintf("%dM", size+roomOnDisk))
	if err != nil {
		d.t.Fatal(err)
	}
	return &Disk{kernel: kernel, image: image}
}

// roomOnDisk is the free space on a disk in MiB.
const roomOnDisk = 1024

// systemKernel prepares the kernel of the system below root for booting, in dir.
func systemKernel(ctx context.Context, root, dir string) (*Kernel, error) {
	const prefix = "vmlinuz-"
	found, err := filepath.Glob(filepath.Join(root, "boot", prefix+"*"))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%s has %d kernels", root, len(found))
	}
	release := strings.TrimPrefix(filepath.Base(found[0]), prefix)
	vmlinuz := filepath.Join(dir, "vmlinuz")
	if err := run(ctx, "cp", found[0], vmlinuz); err != nil {
		return nil, err
	}
	k := &Kernel{
		Series:  strings.Join(strings.SplitN(release, ".", 3)[:2], "."),
		Release: release,
		Image:   filepath.Join(dir, "image"),
		Modules: filepath.Join(root, "lib/modules", release),
	}
	if err := extractImage(ctx, vmlinuz, k.Image); err != nil {
		return nil, err
	}
	return k, os.WriteFile(filepath.Join(dir, description), nil, 0o644)
}

// copy returns a copy of the disk for a guest.
func (d *Disk) copy(ctx context.Context) (*os.File, error) {
	f, err := nameless()
	if err != nil {
		return nil, err
	}
	if err := run(ctx, "cp", "--reflink=auto", "--sparse=always", pathOf(d.image), pathOf(f)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// nameless makes a file that disappears when it is closed. It is in the cache, because disks may not fit into memory.
func nameless() (*os.File, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(mkdir(cache), "disk")
	if err != nil {
		return nil, err
	}
	return f, os.Remove(f.Name())
}

// pathOf returns the path by which other processes can open a file of this one.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

// attach adds the guest's disk to a machine, and the kernel argument by which the agent finds it.
func (h *Host) attach(s *machineSpec) error {
	// Pass a duplicate to the emulator, because the next boot needs ours.
	fd, err := unix.FcntlInt(h.disk.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("disk: %w", err)
	}
	file := s.fd(os.NewFile(uintptr(fd), "disk"))
	s.qemu = append(s.qemu,
		// The host caches the writes of the guest, so flushing is not needed even for a reboot in another machine.
		"-blockdev", "driver=file,node-name=file,locking=off,cache.no-flush=on,filename=/proc/self/fd/"+file,
		"-blockdev", "driver=raw,node-name=disk,file=file", "-device", "virtio-blk-pci,drive=disk",
	)
	s.kernel = append(s.kernel, "smckit.root=/dev/vda", "systemd.hostname="+h.Name)
	return nil
}

// ready waits until a guest that boots from a disk has started all its services, and fails if one of them has failed.
func (h *Host) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Scale(60*time.Second))
	defer cancel()
	r, err := h.Run(ctx, Cmd{Argv: []string{"systemctl", "is-system-running", "--wait"}})
	if err != nil {
		return err
	}
	if state := strings.TrimSpace(r.Stdout); state != "running" {
		why, _ := h.Run(ctx, Cmd{Argv: []string{"/bin/sh", "-c", `systemctl --no-pager --full status $(systemctl --failed --plain --no-legend | cut -d' ' -f1)`}})
		return fmt.Errorf("guest %s is %s, not running: %s%s%s", h.Name, state, r.Stderr, why.Stdout, why.Stderr)
	}
	return nil
}

// bootID returns the identifier of the guest's current boot.
func (h *Host) bootID(ctx context.Context) (string, error) {
	id, err := h.ReadFile(ctx, "/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(id)), err
}

// reboot makes a guest that boots from a disk shut down and start again, in a new machine with the same disk and wires.
func (h *Host) reboot(ctx context.Context) error {
	if h.disk == nil {
		return fmt.Errorf("guest %s has no disk that it could boot again", h.Name)
	}
	before, err := h.bootID(ctx)
	if err != nil {
		return err
	}
	// The guest may stop before it answers.
	if r, err := h.Run(ctx, Cmd{Argv: []string{"systemctl", "reboot"}}); err == nil && r.Code != 0 {
		return fmt.Errorf("guest %s: systemctl reboot: exit status %d: %s", h.Name, r.Code, r.Stderr)
	}
	if err := h.down(ctx); err != nil {
		return err
	}
	if err := h.unplug(); err != nil {
		return err
	}
	if err := h.boot(ctx); err != nil {
		return err
	}
	after, err := h.bootID(ctx)
	if err == nil && after == before {
		err = fmt.Errorf("guest %s has not been rebooted", h.Name)
	}
	return err
}

// down waits until a guest that reboots has shut down, which ends the emulator.
func (h *Host) down(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Scale(30*time.Second))
	defer cancel()
	select {
	case <-h.machine.done:
	case <-ctx.Done():
		return fmt.Errorf("guest %s does not shut down: %w%s", h.Name, ctx.Err(), h.lastWords())
	}
	if h.machine.err != nil || Reports(h.machine.console.String()) != nil {
		return fmt.Errorf("guest %s has not shut down in order: %w%s", h.Name, errors.Join(errDied, h.machine.err), h.lastWords())
	}
	return nil
}

var errDied = errors.New("it has died")

// Reboot makes hosts that boot from disks shut down and start again, and waits until they have started all their services.
// It searches their kernels' logs before the shutdown.
func (lt *Test) Reboot(hosts ...string) {
	lt.t.Helper()
	for name, log := range lt.logs(lt.t.Context()) {
		if slices.Contains(hosts, name) {
			lt.search(lt.Host(name), log)
		}
	}
	group, ctx := errgroup.WithContext(lt.t.Context())
	for _, name := range hosts {
		group.Go(func() error { return lt.Host(name).reboot(ctx) })
	}
	if err := group.Wait(); err != nil {
		lt.t.Fatal(err)
	}
}
