// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// newSocket makes a socket whose calls block for some seconds at most.
func newSocket(t *testing.T, family, kind, protocol int) int {
	t.Helper()
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		t.Skip("this kernel has no such sockets")
	}
	if err := errors.Join(err, guest.Timeout(fd, 10*time.Second)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestRulesLeaveMultipath has sockets of Multipath TCP below a rule for everything: they stay as they are, among themselves and with ordinary
// sockets, which the rule makes SMC.
func TestRulesLeaveMultipath(t *testing.T) {
	needRules(t)
	setRules(t, "smc")
	const plain, multipath = 0, unix.IPPROTO_MPTCP
	for _, c := range []struct {
		client, server         int
		clientKind, serverKind string
	}{
		{multipath, multipath, "", ""}, {plain, multipath, "TCP", ""}, {multipath, plain, "", "TCP"}, {plain, plain, "SMC", "SMC"},
	} {
		t.Run(fmt.Sprint(c.client, " to ", c.server), func(t *testing.T) {
			l, fd := newSocket(t, unix.AF_INET, unix.SOCK_STREAM, c.server), newSocket(t, unix.AF_INET, unix.SOCK_STREAM, c.client)
			_, sa := guest.Sockaddr(service)
			if err := errors.Join(listenOn(l, sa), guest.ConnectSocket(fd, sa)); err != nil {
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
			if client, server := kindOf(t, fd), kindOf(t, s); client != c.clientKind || server != c.serverKind {
				t.Errorf("client %q, server %q", client, server)
			}
			// A server's socket is of Multipath TCP only if both ends have agreed on it.
			protocol, err := unix.GetsockoptInt(s, unix.SOL_SOCKET, unix.SO_PROTOCOL)
			if err != nil || (protocol == multipath) != (c.client == multipath && c.server == multipath) {
				t.Errorf("the protocol of the server's socket is %d, %v", protocol, err)
			}
		})
	}
}

// TestRulesLeaveOthers has sockets below a rule for everything that are not of TCP, although they may be for its packets. The rule never decides
// about them.
func TestRulesLeaveOthers(t *testing.T) {
	needRules(t)
	setRules(t, "smc")
	_, sa := guest.Sockaddr(service)
	t.Run("UDP", func(t *testing.T) {
		s, c := newSocket(t, unix.AF_INET, unix.SOCK_DGRAM, 0), newSocket(t, unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err := errors.Join(unix.Bind(s, sa), unix.Connect(c, sa), ping(c, s, 42)); err != nil {
			t.Error(err)
		}
	})
	t.Run("raw", func(t *testing.T) {
		raw := newSocket(t, unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP)
		_, nobody := guest.Sockaddr(netip.MustParseAddrPort("127.0.0.1:1"))
		c := newSocket(t, unix.AF_INET, unix.SOCK_STREAM, 0)
		if err := unix.Connect(c, nobody); !errors.Is(err, unix.ECONNREFUSED) {
			t.Fatal(err)
		}
		// It receives the SYN of the other socket, from port to port.
		packet := make([]byte, 256)
		for to := uint16(0); to != 1; {
			n, err := unix.Read(raw, packet)
			if err != nil || n < 40 {
				t.Fatalf("%d bytes, %v", n, err)
			}
			to = binary.BigEndian.Uint16(packet[22:])
		}
	})
	// The socket that was refused.
	if n := counters(t)[0].Decisions; n != 1 {
		t.Errorf("the rule has decided %d times", n)
	}
}

// TestRulesLeaveKernel has the kernel make sockets of its own below a rule for everything, while a program is in a system call. They stay TCP,
// as the sockets of programs at their other ends show, which the rule does make SMC.
func TestRulesLeaveKernel(t *testing.T) {
	needRules(t)
	setRules(t, "smc")
	t.Run("client", mount9P)
	t.Run("server", serveNVMe)
}

// needModules loads modules, or skips the test.
func needModules(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := exec.CommandContext(t.Context(), "modprobe", name).Run(); err != nil {
			t.Skipf("this kernel has no module %s", name)
		}
	}
}

// mount9P mounts a file system over TCP: its client is in the kernel, and waits for this program's answer.
func mount9P(t *testing.T) {
	needModules(t, "9p", "9pnet_fd")
	l := newSocket(t, unix.AF_INET, unix.SOCK_STREAM, 0)
	_, sa := guest.Sockaddr(service)
	if err := listenOn(l, sa); err != nil {
		t.Fatal(err)
	}
	dir, done := t.TempDir(), make(chan error, 1)
	go func() {
		done <- unix.Mount(service.Addr().String(), dir, "9p", 0, fmt.Sprintf("trans=tcp,port=%d", service.Port()))
	}()
	s, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	// The first message asks for a version of the protocol.
	const version = 100
	if m, err := guest.ReadFull(s, 5); err != nil || m[4] != version {
		t.Errorf("%v, %v", m, err)
	}
	if kind := kindOf(t, s); kind != "TCP" {
		t.Errorf("the server's socket is %q", kind)
	}
	unix.Close(s)
	if err := <-done; err == nil {
		t.Error("a file system without a server")
		_ = unix.Unmount(dir, 0)
	}
}

// serveNVMe has the kernel serve NVMe over TCP, for which it makes a listener as if a program had asked for it, in symlink().
func serveNVMe(t *testing.T) {
	needModules(t, "nvmet", "nvmet-tcp")
	guest.Run(t, fmt.Sprintf(`mountpoint -q /sys/kernel/config || mount -t configfs none /sys/kernel/config
cd /sys/kernel/config/nvmet
mkdir subsystems/none ports/1
echo ipv4 >ports/1/addr_adrfam
echo tcp >ports/1/addr_trtype
echo %s >ports/1/addr_traddr
echo %d >ports/1/addr_trsvcid
ln -s $PWD/subsystems/none ports/1/subsystems/`, service.Addr(), service.Port()))
	t.Cleanup(func() {
		guest.Run(t, "cd /sys/kernel/config/nvmet; rm ports/1/subsystems/none; rmdir ports/1 subsystems/none")
	})
	c := newSocket(t, unix.AF_INET, unix.SOCK_STREAM, 0)
	_, sa := guest.Sockaddr(service)
	// The request to set up a connection has 128 bytes, and so has the answer.
	const size, answers = 128, 1
	request := make([]byte, size)
	request[2], request[4] = size, size
	if err := errors.Join(unix.Connect(c, sa), guest.WriteAll(c, request)); err != nil {
		t.Fatal(err)
	}
	if m, err := guest.ReadFull(c, size); err != nil || m[0] != answers {
		t.Errorf("%v, %v", m, err)
	}
	if kind := kindOf(t, c); kind != "TCP" {
		t.Errorf("the client's socket is %q", kind)
	}
}
