// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"io"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is a system call that waits for an answer: struct seccomp_notif.
type notification struct {
	id    uint64
	pid   uint32 // of the thread
	flags uint32
	nr    uint32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

// addition is struct seccomp_notif_addfd.
type addition struct {
	id            uint64
	flags         uint32
	source        uint32
	place, fdFlag uint32
}

// listener is the file from which the supervisor receives system calls.
type listener struct {
	file *os.File
	conn syscall.RawConn
	fd   uintptr
}

func newListener(fd int) (*listener, error) {
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "listener")
	// This fails if the Go runtime cannot poll the file.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		return nil, err
	}
	conn, err := file.SyscallConn()
	return &listener{file, conn, uintptr(fd)}, err
}

func (l *listener) ioctl(request uintptr, arg unsafe.Pointer) error {
	for {
		_, _, errno := unix.Syscall(unix.SYS_IOCTL, l.fd, request, uintptr(arg))
		switch errno {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return errno
		}
	}
}

// receive waits for a system call. It returns io.EOF when no process with the filter is left.
//
// It does not block in the ioctl, because the threads of a Go program should not block there for long: in Go 1.26, the runtime
// may take up to a minute to notice a thread that enters a system call just when the garbage collector stops the world.
func (l *listener) receive() (n notification, err error) {
	waitErr := l.conn.Read(func(uintptr) bool {
		for {
			events := l.poll()
			if events&unix.POLLIN != 0 {
				n, err = l.next()
				if err == unix.ENOENT {
					continue // the thread that made the call has ended
				}
				return true
			}
			if events != 0 {
				err = io.EOF
			}
			return events != 0
		}
	})
	return n, errors.Join(waitErr, err)
}

// poll returns the current events of the listener.
func (l *listener) poll() int16 {
	fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	if _, err := retry(func() (int, error) { return unix.Poll(fds, 0) }); err != nil {
		return unix.POLLERR
	}
	return fds[0].Revents
}

// next returns the oldest system call that has not been received.
func (l *listener) next() (notification, error) {
	// The kernel's structure may be longer than ours. It must be zero when it is passed in.
	var n struct {
		notification
		_ [432]byte
	}
	err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
	return n.notification, err
}

// valid reports whether a call still waits. If it does, everything read so far by the number of its thread belongs to that
// thread.
func (l *listener) valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

// proceed lets the kernel carry out a call as if there were no filter. Here and in refuse, the ioctl fails if the thread that
// made the call has ended; that is no error.
func (l *listener) proceed(id uint64) {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// refuse makes a call fail.
func (l *listener) refuse(id uint64, errno unix.Errno) {
	r := response{id: id, error: -int32(errno)}
	_ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// addFD installs a file of the supervisor in the program and makes the call return its number there, in one step. If the
// program has no free descriptor, addFD fails and the call still waits.
func (l *listener) addFD(id uint64, file int, flags uint32) error {
	a := addition{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: uint32(file), fdFlag: flags}
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
}
