// SPDX-License-Identifier: Apache-2.0

package smcstats

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Origin identifies the counters that a reading shows. Readings can be compared only if they have the same origin.
type Origin struct {
	// Boot is the kernel's boot ID.
	Boot string `json:"boot"`
	// NetNS names the network namespace within the boot: its cookie, which is never used twice, or its inode number
	// where the kernel has no cookies (before 5.14).
	NetNS string `json:"netns"`
	// Module identifies one loading of the SMC module within the boot; it is empty where sysfs does not show it.
	Module string `json:"module,omitempty"`
}

// The identity of the initial network namespace: this NetNS up to Linux 6.17, later this inode number, which is less than all
// others (NET_NS_INIT_INO; namespaces of all kinds share their cookies since).
const (
	initialNetNS = "1"
	initialInode = 0xeffffff9
)

// inodePrefix begins a NetNS that is an inode number.
const inodePrefix = "inode-"

// ReadOrigin returns the origin of the counters that the calling process sees.
func ReadOrigin() (Origin, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Origin{}, fmt.Errorf("reading the boot ID: %w", err)
	}
	netns, err := netnsName()
	if err != nil {
		return Origin{}, fmt.Errorf("identifying the network namespace: %w", err)
	}
	return Origin{Boot: strings.TrimSpace(string(boot)), NetNS: netns, Module: moduleName("/sys/module/smc")}, nil
}

func netnsName() (string, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	if cookie, err := unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE); err == nil {
		return fmt.Sprint(cookie), nil
	}
	inode, err := netnsInode()
	if err != nil {
		return "", err
	}
	return inodePrefix + fmt.Sprint(inode), nil
}

func netnsInode() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		return 0, err
	}
	return st.Ino, nil
}

// moduleName uses the fact that sysfs gives each new directory a new number.
func moduleName(dir string) string {
	info, err := os.Stat(dir)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprint(st.Ino)
}

// sameLife reports whether counters of o have been counted on without a restart since those of base.
func (o Origin) sameLife(base Origin) bool {
	return o.Boot == base.Boot && o.NetNS == base.NetNS &&
		(o.Module == base.Module || o.Module == "" || base.Module == "")
}

// InInitialNetNS reports whether the calling process is in the network namespace that the kernel has booted with, which is also
// assumed if the kernel does not report it.
func InInitialNetNS() bool {
	if inode, err := netnsInode(); err == nil && inode == initialInode {
		return true
	}
	name, err := netnsName()
	return err != nil || name == initialNetNS || strings.HasPrefix(name, inodePrefix)
}
