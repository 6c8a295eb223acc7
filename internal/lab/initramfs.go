// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cavaliergopher/cpio"
	"golang.org/x/sys/unix"
)

// bootModules are the modules that a guest needs before it can read this machine's files. Those built into a kernel are
// skipped.
var bootModules = []string{"virtio_pci", "virtio_ccw", "virtio_console", "9pnet_virtio", "9p", "overlay", "virtio_net", "virtio_rng"}

// diskModules are the modules that a guest needs before it can read a disk of its own and communicate with the lab.
var diskModules = []string{"virtio_pci", "virtio_console", "virtio_blk", "crc32c_generic", "ext4"}

// dependency is a line of modules.dep.
type dependency struct {
	name  string   // as modprobe spells it
	file  string   // relative to the module directory
	needs []string // files, in the order in which modprobe would remove them: load from the end
}

// dependencies reads the kernel's modules.dep.
func (k *Kernel) dependencies() ([]dependency, error) {
	data, err := os.ReadFile(filepath.Join(k.Modules, "modules.dep"))
	if err != nil {
		return nil, err
	}
	var deps []dependency
	for line := range strings.Lines(string(data)) {
		file, needs, ok := strings.Cut(strings.TrimSpace(line), ":")
		if !ok {
			continue
		}
		deps = append(deps, dependency{name: moduleName(file), file: file, needs: strings.Fields(needs)})
	}
	return deps, nil
}

// moduleName turns a module's file name into its name.
func moduleName(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// loadOrder lists the files of the named modules and of their dependencies, each after its own dependencies.
func loadOrder(deps []dependency, names []string) []string {
	var order []string
	add := func(file string) {
		if !slices.Contains(order, file) {
			order = append(order, file)
		}
	}
	for _, name := range names {
		i := slices.IndexFunc(deps, func(d dependency) bool { return d.name == strings.ReplaceAll(name, "-", "_") })
		if i < 0 {
			continue
		}
		for _, need := range slices.Backward(deps[i].needs) {
			add(need)
		}
		add(deps[i].file)
	}
	return order
}

// initramfs returns an initramfs for k with the given modules and agent program: a file in memory, which an emulator that inherits
// the descriptor can read. Making it takes less time than finding out whether it was made before.
func initramfs(ctx context.Context, k *Kernel, modules []string, agent []byte) (*os.File, error) {
	image, err := buildInitramfs(ctx, k, modules, agent)
	if err != nil {
		return nil, fmt.Errorf("initramfs for %s: %w", k.Release, err)
	}
	fd, err := unix.MemfdCreate("initramfs", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("initramfs: %w", err)
	}
	f := os.NewFile(uintptr(fd), "initramfs")
	if _, err := f.Write(image); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func buildInitramfs(ctx context.Context, k *Kernel, modules []string, program []byte) ([]byte, error) {
	deps, err := k.dependencies()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	w := cpio.NewWriter(&buf)
	add := func(name string, mode cpio.FileMode, data []byte) {
		err = errors.Join(err, w.WriteHeader(&cpio.Header{Name: name, Mode: mode, Size: int64(len(data))}))
		_, werr := w.Write(data)
		err = errors.Join(err, werr)
	}
	for _, dir := range []string{"dev", "proc", "sys", "modules"} {
		add(dir, cpio.TypeDir|0o755, nil)
	}
	add("init", cpio.TypeReg|0o755, program)
	var order strings.Builder
	for _, file := range loadOrder(deps, modules) {
		data, rerr := readModule(ctx, filepath.Join(k.Modules, file))
		if rerr != nil {
			return nil, rerr
		}
		name := moduleName(file) + ".ko"
		add("modules/"+name, cpio.TypeReg|0o644, data)
		fmt.Fprintln(&order, name)
	}
	add("modules/order", cpio.TypeReg|0o644, []byte(order.String()))
	return buf.Bytes(), errors.Join(err, w.Close())
}

// readModule returns a module uncompressed: decompressing it here costs a tenth of what it costs in an emulated guest.
func readModule(ctx context.Context, path string) ([]byte, error) {
	switch filepath.Ext(path) {
	case ".xz":
		return exec.CommandContext(ctx, "xz", "-dc", path).Output()
	case ".zst":
		return exec.CommandContext(ctx, "zstd", "-qdc", path).Output()
	default:
		return os.ReadFile(path)
	}
}
