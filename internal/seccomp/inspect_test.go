// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// TestMemoryThatDoesNotAnswer runs programs whose calls point to memory that is never provided, as in a file of a stuck file
// system in user space. The supervisor must not answer these programs, and must answer all others.
func TestMemoryThatDoesNotAnswer(t *testing.T) {
	need(t)
	if os.Geteuid() != 0 {
		t.Skip("only root may have memory that the kernel waits for (userfaultfd(2))")
	}
	if fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0); errno != 0 {
		t.Skipf("no memory that the kernel waits for: userfaultfd: %v", errno)
	} else {
		unix.Close(int(fd))
	}
	inside, outside := listenTCP(t, "127.0.0.1:0"), listenTCP(t, "127.0.0.1:0")
	for _, c := range []struct {
		name  string
		stuck int // processes
		b     behaviour
		says  string
	}{
		{"of one process", 1, behaviour{Timeout: time.Hour}, "is outside of the rules: TCP\n"},
		{"of as many as there are inspectors", inspectors, behaviour{Timeout: 10 * time.Millisecond}, "the supervisor could not read memory or sockets in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.b.Ports, c.b.Log = []uint16{inside.Port()}, true
			argv := program(t, "stuck", strconv.Itoa(c.stuck), inside.String(), outside.String())
			if _, stderr := run(t, under(t, c.b, argv...)); !strings.Contains(stderr, c.says) {
				t.Errorf("%s", stderr)
			}
		})
	}
}

// stuck starts processes whose calls no supervisor can inspect, gets sockets itself, and starts a child that connects to
// addresses.
func stuck(args []string) error {
	n, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	if n == 0 {
		return haveStuckCalls()
	}
	for range n {
		cmd := exec.Command("/proc/self/exe", roleProgram, "stuck", "0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			return err
		}
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		if text, err := io.ReadAll(io.LimitReader(out, 5)); string(text) != "stuck" {
			return fmt.Errorf("%q, %w", text, err)
		}
	}
	for range 50 {
		if err := isTagged(unix.AF_INET); err != nil {
			return err
		}
	}
	cmd := exec.Command("/proc/self/exe", append([]string{roleProgram, "rules"}, args[1:]...)...)
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

// Constants of userfaultfd(2).
const (
	uffdioAPI      = 0xc018aa3f
	uffdioRegister = 0xc020aa00
	uffdVersion    = 0xaa
	uffdMissing    = 1
)

// haveStuckCalls calls connect() on more threads than the supervisor has, with an address in memory that is never provided. It
// prints a word when the first call is stuck, and runs until a signal ends it.
func haveStuckCalls() error {
	memory, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	address := uintptr(unsafe.Pointer(&memory[0]))
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC, 0, 0)
	if errno != 0 {
		return errno
	}
	api := [3]uint64{uffdVersion}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioAPI, uintptr(unsafe.Pointer(&api))); errno != 0 {
		return errno
	}
	register := [4]uint64{uint64(address), uint64(os.Getpagesize()), uffdMissing}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, uffdioRegister, uintptr(unsafe.Pointer(&register))); errno != 0 {
		return errno
	}
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for range 2 * (workers + inspectors) {
		go func() { _, _, _ = unix.Syscall(unix.SYS_CONNECT, uintptr(socket), address, unix.SizeofSockaddrInet4) }()
	}
	message := make([]byte, 32)
	if _, err := unix.Read(int(fd), message); err != nil {
		return err
	}
	if at := binary.NativeEndian.Uint64(message[16:]); at&^uint64(os.Getpagesize()-1) != uint64(address) {
		return errors.New("another fault")
	}
	fmt.Print("stuck")
	select {}
}
