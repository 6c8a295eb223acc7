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

// listener is where the kernel asks about system calls.
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
	// The Go runtime waits for it, or this fails.
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

// receive waits for a system call. The error is io.EOF if there is no process left with the filter.
//
// It could wait in the kernel, too, but a Go program had better not have its threads there for long: in Go 1.26, a thread that
// enters a system call just when the world is to be stopped, for the garbage collector, is not noticed for up to a minute.
func (l *listener) receive() (n notification, err error) {
	waitErr := l.conn.Read(func(uintptr) bool {
		for {
			events := l.poll()
			if events&unix.POLLIN != 0 {
				n, err = l.next()
				if err == unix.ENOENT {
					continue // whoever has asked has gone
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

// poll returns what there is to know of the listener now.
func (l *listener) poll() int16 {
	fds := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
	if _, err := retry(func() (int, error) { return unix.Poll(fds, 0) }); err != nil {
		return unix.POLLERR
	}
	return fds[0].Revents
}

// next returns the system call that has come first of those that nobody has received.
func (l *listener) next() (notification, error) {
	// The kernel's structure may be longer than ours. What it writes to has to be zero.
	var n struct {
		notification
		_ [432]byte
	}
	err := l.ioctl(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n))
	return n.notification, err
}

// valid says whether a call still waits. If it does, what has been found out by the number of its thread is about that thread.
func (l *listener) valid(id uint64) bool {
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == nil
}

// proceed lets the kernel carry out a call as if there were no filter. Whoever has made it may have gone, here as in refuse.
func (l *listener) proceed(id uint64) {
	r := response{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	_ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// refuse has a call fail.
func (l *listener) refuse(id uint64, errno unix.Errno) {
	r := response{id: id, error: -int32(errno)}
	_ = l.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// give puts a file of ours into the program and has the call return its number there, as one step. If the program can take no
// more files, the call still waits.
func (l *listener) give(id uint64, file int, flags uint32) error {
	a := addition{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, source: uint32(file), fdFlag: flags}
	return l.ioctl(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
}
