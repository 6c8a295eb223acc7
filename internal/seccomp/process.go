// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readMemory reads memory of another process.
func readMemory(pid int, address uint64, size int) ([]byte, error) {
	if size == 0 {
		return nil, nil
	}
	buf := make([]byte, size)
	local := []unix.Iovec{{Base: &buf[0]}}
	local[0].SetLen(size)
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(address), Len: size}}, 0)
	if err == nil && n != size {
		err = unix.EFAULT
	}
	return buf, err
}

// readWords reads numbers from the memory of another process.
func readWords(pid int, address uint64, size, count int) ([]uint64, error) {
	raw, err := readMemory(pid, address, size*count)
	if err != nil {
		return nil, err
	}
	words := make([]uint64, count)
	for i := range words {
		if size == 4 {
			words[i] = uint64(binary.NativeEndian.Uint32(raw[4*i:]))
		} else {
			words[i] = binary.NativeEndian.Uint64(raw[8*i:])
		}
	}
	return words, nil
}

// fileOf duplicates a file descriptor of another thread.
func fileOf(tid, number int) (int, error) {
	pidfd, err := unix.PidfdOpen(tid, unix.PIDFD_THREAD)
	if errors.Is(err, unix.EINVAL) {
		// Before Linux 6.9, pidfd_open(2) accepts only processes. The first thread of a process nearly always has the same
		// files.
		s, serr := readStatus(tid)
		pid, perr := s.number("Tgid:", 0)
		if err := errors.Join(serr, perr); err != nil {
			return -1, err
		}
		pidfd, err = unix.PidfdOpen(pid, 0)
	}
	if err != nil {
		return -1, err
	}
	defer unix.Close(pidfd)
	return unix.PidfdGetfd(pidfd, number, 0)
}

// canInspect checks whether the supervisor may access files of a thread.
func canInspect(tid int) error {
	fd, err := fileOf(tid, -1)
	if err == nil {
		unix.Close(fd)
	}
	if errors.Is(err, unix.EBADF) {
		return nil
	}
	return err
}

// status is the content of /proc/PID/status: lines that begin with a name.
type status string

func readStatus(tid int) (status, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	return status(text), err
}

// number returns the nth number of a line.
func (s status) number(line string, n int) (int, error) {
	for l := range strings.Lines(string(s)) {
		if fields := strings.Fields(l); len(fields) > n+1 && fields[0] == line {
			return strconv.Atoi(fields[n+1])
		}
	}
	return 0, fmt.Errorf("the status of a thread has no %s", line)
}

// fsID is the index of the file system user and group in their lines. They determine the owner of files and sockets.
const fsID = 3

// assumeUser makes the calling thread create sockets that belong to the program's user, until restore is called.
func assumeUser(tid int) (restore func(), err error) {
	s, err := readStatus(tid)
	if err != nil {
		return nil, err
	}
	uid, err1 := s.number("Uid:", fsID)
	gid, err2 := s.number("Gid:", fsID)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	// Neither call returns an error: if the kernel refuses an ID, the old one stays.
	oldGID, _ := unix.SetfsgidRetGid(gid)
	oldUID, _ := unix.SetfsuidRetUid(uid)
	return func() {
		_ = unix.Setfsuid(oldUID)
		_ = unix.Setfsgid(oldGID)
	}, nil
}
