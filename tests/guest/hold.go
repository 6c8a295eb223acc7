// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of <linux/userfaultfd.h> for an interface of version 0xAA.
const (
	uffdAPI            = 0xaa
	uffdioAPI          = 0xc018aa3f
	uffdioRegister     = 0xc020aa00
	uffdioCopy         = 0xc028aa03
	uffdRegisterMiss   = 1
	uffdMessageSize    = 32
	uffdEventPagefault = 0x12 // in the first byte
)

// Holder keeps threads of the user Nobody in setsockopt(2), as any user can: the value is in a page that userfaultfd(2) does not provide.
type Holder struct {
	uffd    int
	page    []byte
	threads sync.WaitGroup
	once    sync.Once
}

// NewHolder returns a holder of no threads. The end of the test releases those that it gets.
func NewHolder(t *testing.T) *Holder {
	t.Helper()
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	// An ordinary user needs this permission, or the memory of a file whose file system he serves himself, by FUSE.
	const permission = "/proc/sys/vm/unprivileged_userfaultfd"
	before, err := os.ReadFile(permission)
	if err == nil {
		err = os.WriteFile(permission, []byte("1"), 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	var uffd int
	err = AsNobody(func() (err error) {
		uffd, err = missing(page)
		return err
	})
	err = errors.Join(err, os.WriteFile(permission, before, 0))
	if err != nil {
		t.Fatalf("userfaultfd: %v", err)
	}
	h := &Holder{uffd: uffd, page: page}
	t.Cleanup(h.Release)
	return h
}

// Hold has a thread for each IPv4 socket sleep in setsockopt(2), with the lock of the sock held when this returns.
func (h *Holder) Hold(fds ...int) error {
	for _, fd := range fds {
		h.threads.Go(func() {
			// It fails once the page is provided, because zeros are no valid options.
			_ = AsNobody(func() error { return h.set(fd, unix.IPPROTO_IP, unix.IP_OPTIONS, 40) })
		})
	}
	return awaitFaults(h.uffd, len(fds))
}

// HoldOption has a thread sleep in setsockopt(2) for any option, while the kernel copies the value. The result of the call comes once
// the page is provided.
func (h *Holder) HoldOption(fd, level, name, size int) (<-chan error, error) {
	result := make(chan error, 1)
	h.threads.Go(func() {
		result <- AsNobody(func() error { return h.set(fd, level, name, size) })
	})
	return result, awaitFaults(h.uffd, 1)
}

// set sets an option to what the page contains.
func (h *Holder) set(fd, level, name, size int) error {
	_, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name),
		uintptr(unsafe.Pointer(&h.page[0])), uintptr(size), 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// Provide provides the page with a content, so that all threads go on.
func (h *Holder) Provide(content string) error {
	page := make([]byte, len(h.page))
	copy(page, content)
	request := struct {
		dst, src, size, mode uint64
		copied               int64
	}{
		dst: uint64(uintptr(unsafe.Pointer(&h.page[0]))), src: uint64(uintptr(unsafe.Pointer(&page[0]))), size: uint64(len(page)),
	}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(h.uffd), uffdioCopy, uintptr(unsafe.Pointer(&request)))
	runtime.KeepAlive(page)
	if errno != 0 {
		return fmt.Errorf("UFFDIO_COPY: %w", errno)
	}
	return nil
}

// Release provides the page, and waits for the threads.
func (h *Holder) Release() {
	h.once.Do(func() {
		unix.Close(h.uffd) // a thread that waits for the page gets an empty one
		h.threads.Wait()
		_ = unix.Munmap(h.page)
	})
}

// missing opens a descriptor that reports threads which wait for a page, and provides none.
func missing(page []byte) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	api := [3]uint64{uffdAPI}
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api)))
	if errno == 0 {
		register := [4]uint64{uint64(uintptr(unsafe.Pointer(&page[0]))), uint64(len(page)), uffdRegisterMiss}
		_, _, errno = unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&register)))
	}
	if errno != 0 {
		unix.Close(int(fd))
		return -1, errno
	}
	return int(fd), nil
}

// awaitFaults waits until n threads wait for the page.
func awaitFaults(uffd, n int) error {
	for seen := 0; seen < n; {
		var message [uffdMessageSize]byte
		got, err := unix.Read(uffd, message[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		seen++
		if err != nil {
			return err
		}
		if got != len(message) || message[0] != uffdEventPagefault {
			return errors.New("userfaultfd tells of something else than a fault")
		}
	}
	return nil
}

// HeldSockets is one more than the workers that a work queue without a limit of its own runs at once: 256, or 1024 since Linux
// 6.15.
func HeldSockets(t *testing.T) int {
	t.Helper()
	release, err := Release()
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(release, "6.1.") || strings.HasPrefix(release, "6.12.") {
		return 300
	}
	return 1100
}
