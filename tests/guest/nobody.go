// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Nobody is the ID of a user, and of a group, without rights.
const Nobody = 65534

// AsNobody calls do on a thread of the user Nobody, and returns its error. The thread then ends. Goroutines that do starts run as the user
// of the program.
func AsNobody(do func() error) error {
	return onThread(func() error {
		// The functions of package syscall would change all threads. A change of the user takes the thread's capabilities, too.
		for _, call := range [][4]uintptr{
			{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, Nobody, Nobody, Nobody}, {unix.SYS_SETRESUID, Nobody, Nobody, Nobody},
		} {
			if _, _, errno := unix.RawSyscall(call[0], call[1], call[2], call[3]); errno != 0 {
				return fmt.Errorf("become the user %d: %w", Nobody, errno)
			}
		}
		return do()
	})
}
