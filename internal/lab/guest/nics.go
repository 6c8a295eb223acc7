// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nameInterfaces waits until a number of network interfaces are there, and names each by the last byte of its address: eth0, eth1
// and so on. The kernel gives them these names, too, but in the order in which it happens to find them.
func nameInterfaces(number string) error {
	if number == "" {
		return nil
	}
	want, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("smckit.nics: %w", err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		found, err := interfaces()
		if err != nil {
			return err
		}
		if len(found) == want {
			return rename(found)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d network interfaces", len(found), want)
		}
	}
}

// interfaces returns the names of the interfaces that the lab made, by the numbers of their wires.
func interfaces() (map[int]string, error) {
	files, err := filepath.Glob("/sys/class/net/*/address")
	if err != nil {
		return nil, err
	}
	found := map[int]string{}
	for _, file := range files {
		address, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		rest, ours := strings.CutPrefix(strings.TrimSpace(string(address)), "52:54:00:00:")
		_, last, ok := strings.Cut(rest, ":")
		if !ours || !ok {
			continue
		}
		wire, err := strconv.ParseUint(last, 16, 8)
		if err != nil {
			return nil, err
		}
		found[int(wire)] = filepath.Base(filepath.Dir(file))
	}
	return found, nil
}

// rename gives the interfaces their names: first names that none has, so that two can change places.
func rename(found map[int]string) error {
	for _, prefix := range []string{"wire", "eth"} {
		for i, name := range found {
			next := prefix + strconv.Itoa(i)
			if err := setName(name, next); err != nil {
				return err
			}
			found[i] = next
		}
	}
	return nil
}

// setName renames an interface that is down.
func setName(from, to string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var req struct {
		from, to [unix.IFNAMSIZ]byte
		_        [8]byte
	} // the size of struct ifreq
	copy(req.from[:unix.IFNAMSIZ-1], from)
	copy(req.to[:unix.IFNAMSIZ-1], to)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCSIFNAME, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return fmt.Errorf("renaming interface %s to %s: %w", from, to, errno)
	}
	return nil
}
