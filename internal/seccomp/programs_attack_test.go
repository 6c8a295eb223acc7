// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attempts is the number of sockets that each attack asks for.
const attempts = 1000

// forge gives up the privileges of root and tries to make the supervisor, which still has them, write to a file. For this it
// uses a descriptor without access to that file as its standard error, and the text to be written as its name.
func forge(args []string) error {
	// Set-user-ID of all threads, as a daemon does.
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(65534), syscall.Setuid(65534)); err != nil {
		return err
	}
	path, err := unix.Open(args[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	name := []byte("x\nforged\x1b[2J\x00")
	for _, attack := range []func(path int, name []byte) error{forgeByPath, forgeByRace, forgeByOtherThread} {
		if err := attack(path, name); err != nil {
			fmt.Println(err) // standard error is the file by now
			return err
		}
	}
	return nil
}

// manySockets asks for sockets on a thread with this name.
func manySockets(name []byte) error {
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return err
	}
	for range attempts {
		// forgeByRace closes file 2 for a moment: then the socket may get its number, and forgeByRace closes the socket.
		if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil && fd != unix.Stderr {
			unix.Close(fd)
		}
	}
	return nil
}

// forgeByPath uses the descriptor as file 2.
func forgeByPath(path int, name []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Dup3(path, unix.Stderr, 0); err != nil {
		return err
	}
	return manySockets(name)
}

// forgeByRace closes and replaces file 2 all the time, so that it may be missing when the supervisor first looks, and be the
// descriptor when it looks again.
func forgeByRace(path int, name []byte) error {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = unix.Close(unix.Stderr)
			// This fails with EBUSY while the supervisor installs a socket there.
			_ = unix.Dup3(path, unix.Stderr, 0)
		}
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := manySockets(name)
	close(stop)
	<-stopped
	return err
}

// forgeByOtherThread asks on a thread whose descriptor table is separate and whose file 2 is closed: before Linux 6.9, a
// supervisor gets the files of the first thread only.
func forgeByOtherThread(path int, name []byte) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and not unlocked: the thread ends with the goroutine
		done <- func() error {
			if err := unix.Unshare(unix.CLONE_FILES); err != nil {
				return err
			}
			if err := unix.Dup3(path, unix.Stderr, 0); err != nil {
				return err
			}
			ready := make(chan error)
			go func() { ready <- unix.Close(unix.Stderr) }()
			if err := <-ready; err != nil {
				return err
			}
			return manySockets(name)
		}()
	}()
	return <-done
}

// redirected opens a file as its standard error and asks for a socket. A daemon that has closed its standard error may do the
// same by accident.
func redirected(args []string) error {
	file, err := os.Create(args[0])
	if err != nil {
		return err
	}
	if err := unix.Dup3(int(file.Fd()), unix.Stderr, 0); err != nil {
		return err
	}
	return isPlain(unix.AF_INET)
}

// named sets the name of its thread and asks for a socket.
func named(args []string) error {
	runtime.LockOSThread()
	name, err := strconv.Unquote(args[0])
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	raw := append([]byte(name), 0)
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&raw[0])), 0, 0, 0); err != nil {
		return err
	}
	return isPlain(unix.AF_INET)
}
