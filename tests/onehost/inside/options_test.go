// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestOptionsRefused sets options that would pass a socket to another protocol. They must fail, and the connection must still
// use SMC.
func TestOptionsRefused(t *testing.T) {
	settled(t)
	onlySMC(t, 1)
	addr := netip.AddrPortFrom(here.Addr(), 7040)
	l, _, err := socket(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	c, sa, err := socket(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(c)
	for name, fd := range map[string]int{"listener": l, "client": c} {
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "nosuch"); !errors.Is(err, unix.ENOENT) {
			t.Errorf("%s: TCP_ULP of a protocol that is not there: %v", name, err)
		}
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "mptcp"); err == nil {
			t.Errorf("%s: TCP_ULP of a protocol that is not for applications succeeds", name)
		}
		if err := unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "tls"); err == nil {
			t.Errorf("%s: TCP_ULP without a connection succeeds", name)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_ADDRFORM, unix.AF_INET); err == nil {
			t.Errorf("%s: IPV6_ADDRFORM of an IPv4 socket succeeds", name)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_TCP, unix.TCP_REPAIR, 77); err == nil {
			t.Errorf("%s: TCP_REPAIR of an unknown mode succeeds", name)
		}
	}
	if err := errors.Join(unix.Bind(l, sa), unix.Listen(l, 1), unix.Connect(c, sa)); err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	if err := errors.Join(ping(c, s, 42), ping(s, c, 42)); err != nil {
		t.Error(err)
	}
}

// TestOptionsRefusedRace has a thread of an unprivileged user set TCP_ULP on a listener, with a value that stalls until another thread has ended the listening
// and connected the socket, or waits to do so. The option must fail, because kTLS must not see a socket whose connection is SMC.
func TestOptionsRefusedRace(t *testing.T) {
	settled(t)
	onlySMC(t, 1)
	addr := netip.AddrPortFrom(here.Addr(), 7042)
	l, err := listen(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	fd, err := listen(netip.AddrPortFrom(here.Addr(), 7041), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	guest.Run(t, "modprobe tls") // TCP does not load it for an unprivileged user
	holder := guest.NewHolder(t)
	option, err := holder.HoldOption(fd, unix.SOL_TCP, unix.TCP_ULP, len("tls"))
	if err != nil {
		t.Fatal(err)
	}
	connected, thread := make(chan error, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		thread <- unix.Gettid()
		_, sa := guest.Sockaddr(addr)
		connected <- errors.Join(unix.Shutdown(fd, unix.SHUT_RDWR), guest.ConnectSocket(fd, sa))
	}()
	awaitCall(t, <-thread, unix.SYS_SHUTDOWN, connected)
	if err := holder.Provide("tls"); err != nil {
		t.Fatal(err)
	}
	if err := <-option; !errors.Is(err, unix.ENOTCONN) {
		t.Errorf("TCP_ULP on a listener that connects meanwhile: %v, want ENOTCONN", err)
	}
	if err := <-connected; err != nil {
		t.Fatal(err)
	}
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(s)
	if err := errors.Join(ping(fd, s, 42), ping(s, fd, 42)); err != nil {
		t.Error(err)
	}
}

// awaitCall waits until a thread sleeps in a system call, or has sent the result of what it does.
func awaitCall(t *testing.T, thread, number int, result <-chan error) {
	t.Helper()
	guest.Await(t, noticeTimeout, func() string {
		if len(result) > 0 {
			return ""
		}
		// It begins with the number of the system call in which the thread sleeps.
		now, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/syscall", thread))
		if err != nil || !strings.HasPrefix(string(now), fmt.Sprint(number, " ")) {
			return fmt.Sprintf("the other thread neither has a result nor sleeps in call %d: %s, %v", number, now, err)
		}
		return ""
	})
}
