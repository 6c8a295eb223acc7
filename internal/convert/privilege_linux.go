// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"golang.org/x/sys/unix"
)

// GainsPrivilege reports whether executing the file gives the caller new privileges, by its set-user-ID or set-group-ID bit or
// by file capabilities. Such a program ignores preloaded libraries, and would not get its privileges under a filter.
func GainsPrivilege(path string) (bool, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return false, err
	}
	if on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0); err == nil && on == 1 {
		return false, nil // these bits are ignored already
	}
	switch {
	case st.Mode&unix.S_ISUID != 0 && int(st.Uid) != unix.Getuid():
		return true, nil
	case st.Mode&unix.S_ISGID != 0 && st.Mode&unix.S_IXGRP != 0 && int(st.Gid) != unix.Getgid():
		return true, nil
	case unix.Geteuid() == 0:
		return false, nil // root already has the capabilities
	}
	_, err := unix.Getxattr(path, "security.capability", nil)
	return err == nil, nil
}
