// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

type mount struct {
	source, target, fstype string
	flags                  uintptr
	data                   string
}

// Options of every 9p mount. Reading large programs under emulation would take too long with a smaller message size.
const options9p = "trans=virtio,version=9p2000.L,msize=512000"

// prepare loads the modules of the initramfs and returns the kernel's arguments.
func prepare() (map[string]string, error) {
	for _, m := range []mount{
		{"proc", "/proc", "proc", 0, ""},
		{"sysfs", "/sys", "sysfs", 0, ""},
		{"devtmpfs", "/dev", "devtmpfs", 0, ""},
	} {
		if err := m.do(); err != nil {
			return nil, err
		}
	}
	if err := loadModules("/modules"); err != nil {
		return nil, err
	}
	return kernelArgs()
}

// mountAll makes the machine's files, with a writable layer above them, the root of this guest.
func mountAll(args map[string]string) error {
	if err := mountRoot(args["smckit.release"], args["smckit.shares"], args["smckit.userland"]); err != nil {
		return err
	}
	return afterRoot(args)
}

// mountRoot makes the root. If userland is the tag of a directory, the programs in it come before the machine's.
func mountRoot(release, shares, userland string) error {
	const root = "/newroot"
	lower := "/lower"
	if userland != "" {
		m := mount{userland, "/userland", "9p", unix.MS_RDONLY, options9p + ",cache=loose"}
		if err := m.do(); err != nil {
			return err
		}
		lower = "/userland:/lower"
	}
	for _, m := range []mount{
		{"root", "/lower", "9p", unix.MS_RDONLY, options9p + ",cache=loose"},
		{"tmpfs", "/upper", "tmpfs", 0, "mode=755,size=75%"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/upper/files", "/upper/work", "/upper/modules", root} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	overlay := mount{"overlay", root, "overlay", 0, "lowerdir=" + lower + ",upperdir=/upper/files,workdir=/upper/work"}
	if err := overlay.do(); err != nil {
		return err
	}
	for _, m := range []mount{
		{"tmpfs", root + "/run", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, "mode=755"},
		{"devpts", "/dev/pts", "devpts", 0, "gid=5,mode=620,ptmxmode=666"},
		{"tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID | unix.MS_NODEV, ""},
		{"debugfs", "/sys/kernel/debug", "debugfs", 0, ""},
		{"tracefs", "/sys/kernel/tracing", "tracefs", 0, ""},
		{"cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""},
		{"modules", "/modlower", "9p", unix.MS_RDONLY, options9p + ",cache=loose"},
	} {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := mountModules(root, release); err != nil {
		return err
	}
	if err := mountShares(root, shares); err != nil {
		return err
	}
	return switchRoot(root)
}

// mountModules puts the modules of this guest's kernel, writable for depmod, where modprobe looks for them.
func mountModules(root, release string) error {
	target := filepath.Join(root, "lib/modules", release)
	// /lib is a symbolic link on a merged-/usr system, an absolute one on some: resolve it inside the new root.
	if link, err := os.Readlink(root + "/lib"); err == nil {
		target = filepath.Join(root, link, "modules", release)
	}
	for _, dir := range []string{"/upper/modfiles", "/upper/modwork", target} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	m := mount{"overlay", target, "overlay", 0, "lowerdir=/modlower,upperdir=/upper/modfiles,workdir=/upper/modwork"}
	return m.do()
}

// mountShares mounts the directories that are shared for writing, each at the path it has outside: a comma-separated
// list of tag:path.
func mountShares(root, shares string) error {
	for share := range strings.SplitSeq(shares, ",") {
		tag, path, ok := strings.Cut(share, ":")
		if !ok {
			continue
		}
		m := mount{tag, filepath.Join(root, path), "9p", 0, options9p + ",cache=mmap"}
		if err := m.do(); err != nil {
			return err
		}
	}
	return nil
}

// switchRoot moves the mounts below root and makes root the root.
func switchRoot(root string) error {
	for _, dir := range []string{"/proc", "/sys", "/dev"} {
		if err := os.MkdirAll(root+dir, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(dir, root+dir, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("moving %s: %w", dir, err)
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(root, "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("moving the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("chroot: %w", err)
	}
	return os.Chdir("/")
}

// afterRoot mounts the file systems and sets the parameters that programs expect of a running system.
func afterRoot(args map[string]string) error {
	for _, dir := range []string{"/run/netns", "/run/lock", "/run/user/0"} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if host := args["smckit.host"]; host != "" {
		if err := unix.Sethostname([]byte(host)); err != nil {
			return fmt.Errorf("hostname: %w", err)
		}
	}
	if err := nameInterfaces(args["smckit.nics"]); err != nil {
		return err
	}
	return linkUp("lo")
}

func (m mount) do() error {
	if err := os.MkdirAll(m.target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, m.target, m.fstype, m.flags, m.data); err != nil {
		return fmt.Errorf("mounting %s (%s) on %s: %w", m.source, m.fstype, m.target, err)
	}
	return nil
}

// kernelArgs returns the kernel's name=value arguments.
func kernelArgs() (map[string]string, error) {
	line, err := os.ReadFile("/proc/cmdline")
	if err != nil {
		return nil, err
	}
	args := map[string]string{}
	for word := range strings.FieldsSeq(string(line)) {
		if name, value, ok := strings.Cut(word, "="); ok {
			args[name] = value
		}
	}
	return args, nil
}

// loadModules loads the modules that dir/order names, one file name a line, in that order.
func loadModules(dir string) error {
	f, err := os.Open(filepath.Join(dir, "order"))
	if err != nil {
		return err
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if err := loadModule(filepath.Join(dir, lines.Text())); err != nil {
			return err
		}
	}
	return nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("loading %s: %w", path, err)
	}
	return nil
}

// linkUp sets a network interface up.
func linkUp(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	req.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
