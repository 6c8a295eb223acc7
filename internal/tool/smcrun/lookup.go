// SPDX-License-Identifier: Apache-2.0

package smcrun

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Exit statuses of shells.
const (
	exitCannotRun = 126 // the command exists but cannot be executed
	exitNotFound  = 127
)

// commandError explains why a command cannot be executed.
type commandError struct {
	status int
	text   string
}

func (e *commandError) Error() string { return e.text }

// lookup finds a command like a shell: in the directories of PATH, unless its name contains a slash.
func lookup(name, path string) (string, error) {
	if name == "" {
		return "", &commandError{exitNotFound, `"": command not found: the name is empty`}
	}
	if strings.Contains(name, "/") {
		if err := executable(name); err != nil {
			return "", cannotRun(name, err)
		}
		return name, nil
	}
	var denied error
	for dir := range strings.SplitSeq(cmp.Or(path, "/usr/local/bin:/usr/bin:/bin"), ":") {
		file := filepath.Join(cmp.Or(dir, "."), name)
		if !strings.Contains(file, "/") {
			file = "./" + file
		}
		err := executable(file)
		switch {
		case err == nil:
			return file, nil
		case denied == nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.EISDIR):
			denied = cannotRun(file, err)
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &commandError{exitNotFound, fmt.Sprintf("%s: command not found: it is not in a directory of PATH", name)}
}

// executable returns nil if this user may execute a file, and the reason if not.
func executable(file string) error {
	var st unix.Stat_t
	if err := unix.Stat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return unix.EACCES
	}
	return unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS)
}

// cannotRun explains an error of execve(2) and returns it with the exit status that shells use.
func cannotRun(file string, err error) error {
	e := &commandError{status: exitCannotRun}
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		e.status, e.text = exitNotFound, "no such file: check the path"
	case errors.Is(err, unix.EISDIR):
		e.text = "is a directory: name a program in it"
	case errors.Is(err, unix.EACCES):
		e.text = "permission denied: it must be a file that you may execute ('ls -l' shows its mode)"
	case errors.Is(err, unix.ENOEXEC):
		e.text = "is not a program that this machine can execute ('file' shows its type)"
	default:
		e.text = err.Error()
	}
	e.text = file + ": " + e.text
	return e
}
