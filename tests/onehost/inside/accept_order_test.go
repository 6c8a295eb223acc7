// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestAcceptedInOrder has clients of this host connect to a listener, one after another, before any of them is accepted. accept()
// returns their connections in the order in which they were made, as with TCP, whether it takes them out of TCP's queue itself, or a
// poll has started a worker that does. In two cases, some clients are plain TCP.
func TestAcceptedInOrder(t *testing.T) {
	settled(t)
	n := length(100, 1000)
	for i, c := range []struct {
		name        string
		polled      bool
		plainClient func(i int) bool
	}{
		{"accept", false, func(int) bool { return false }},
		{"poll", true, func(int) bool { return false }},
		{"accept, with plain TCP", false, func(i int) bool { return i%3 == 2 }},
		{"poll, with plain TCP", true, func(i int) bool { return i%3 == 2 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			addr := netip.AddrPortFrom(here.Addr(), uint16(7060+i))
			l, err := listen(addr, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(l)
			if c.polled {
				pollForever(t, l)
			}
			guest.RaiseFiles(t, uint64(3*n+1000))
			var made []clientConn
			defer func() {
				for _, a := range made {
					guest.Abort(a.fd)
				}
			}()
			before := count(t)
			smc := 0
			for i := range n {
				plain := c.plainClient(i)
				made = append(made, connectFor(t, addr, plain))
				if !plain {
					smc++
				}
			}
			awaitServers(t, before, smc)
			checkOrder(t, l, made)
		})
	}
}

// clientConn is a client's end of a connection, and its port.
type clientConn struct{ fd, port int }

// connectFor connects a client, whose socket has SMC unless it is plain.
func connectFor(t *testing.T, addr netip.AddrPort, plain bool) clientConn {
	t.Helper()
	family := unix.AF_SMC
	if plain {
		family = unix.AF_INET
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, sa := guest.Sockaddr(addr)
	if err := guest.ConnectSocket(fd, sa); err != nil {
		t.Fatal(err)
	}
	return clientConn{fd, portOf(t, fd)}
}

// pollForever has a poller wait for events of a listener until the end of the test, so that a worker takes the connections out of TCP's
// queue as they arrive.
func pollForever(t *testing.T, l int) {
	t.Helper()
	ep, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(ep) })
	if err := unix.EpollCtl(ep, unix.EPOLL_CTL_ADD, l, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(l)}); err != nil {
		t.Fatal(err)
	}
	events := make([]unix.EpollEvent, 1)
	if n, err := unix.EpollWait(ep, events, 0); n != 0 || err != nil {
		t.Fatalf("%d events of a listener without connections, %v", n, err)
	}
}

// awaitServers waits until the handshakes of n connections since before are over at the server's end, too.
func awaitServers(t *testing.T, before counts, n int) {
	t.Helper()
	guest.Await(t, noticeTimeout, func() string {
		if got := int(count(t).servers - before.servers); got != n {
			return fmt.Sprintf("%d of %d connections are SMC at the server's end", got, n)
		}
		return ""
	})
}

// checkOrder accepts connections, and checks that they come in their order.
func checkOrder(t *testing.T, l int, made []clientConn) {
	t.Helper()
	var order []int
	for len(order) < len(made) {
		fd, sa, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		guest.Abort(fd)
		port := sa.(*unix.SockaddrInet4).Port
		order = append(order, slices.IndexFunc(made, func(a clientConn) bool { return a.port == port }))
	}
	if !slices.IsSorted(order) {
		t.Errorf("connections were accepted in the order %v", order)
	}
}
