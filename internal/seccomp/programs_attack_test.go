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

// attempts is how many sockets each way of attacking gets.
const attempts = 1000

// forge has given up root's privileges, and tries to have the supervisor, which has them, write to a file: it makes a
// descriptor without access to that file its standard error, and its name what is to be written.
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

// manySockets asks for sockets, on a thread with this name.
func manySockets(name []byte) error {
	if err := unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0, 0, 0); err != nil {
		return err
	}
	for range attempts {
		// The socket may get number 2 where that is closed for a moment, and lose it.
		if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0); err == nil && fd != unix.Stderr {
			unix.Close(fd)
		}
	}
	return nil
}

// forgeByPath has the descriptor as file 2.
func forgeByPath(path int, name []byte) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Dup3(path, unix.Stderr, 0); err != nil {
		return err
	}
	return manySockets(name)
}

// forgeByRace changes what file 2 is all the time, so that it may be missing first, and the file next.
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
			// Fails with EBUSY while the supervisor puts a socket there.
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

// forgeByOtherThread asks on a thread that shares no files with the others, whose file 2 is closed: before Linux 6.9 a
// supervisor gets files of the first thread only.
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

// redirected opens a file as its standard error, as a daemon may that has closed it, and asks for a socket.
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

// named asks for a socket under a name of its choice.
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
