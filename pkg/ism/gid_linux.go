// SPDX-License-Identifier: Apache-2.0

package ism

import "golang.org/x/sys/unix"

// readSmall reads an attribute that fits into buf with few system calls, because tables of GIDs have a thousand files.
// It returns nil if the attribute cannot be read.
func readSmall(path string, buf []byte) []byte {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	for {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil
		}
		return buf[:n]
	}
}
