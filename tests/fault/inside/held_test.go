// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"net/netip"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestHeldListeners connects to a thousand listeners while a thread of each listener's program holds the lock of its
// sock. Other handshakes go on meanwhile.
func TestHeldListeners(t *testing.T) {
	guest.UseNull(t, true)
	e := guest.NewEcho(t, held, 64)
	defer e.Close(t)
	guest.RaiseFiles(t, 1<<14)
	var listeners, clients []int
	for i := range guest.HeldSockets(t) {
		fd, err := guest.Listen(netip.AddrPortFrom(held.Addr(), uint16(10_000+i)), 4)
		if err != nil {
			t.Fatal(err)
		}
		listeners = append(listeners, fd)
	}
	holder := guest.NewHolder(t)
	if err := holder.Hold(listeners...); err != nil {
		t.Fatal(err)
	}
	for i := range guest.HeldSockets(t) {
		_, sa := guest.Sockaddr(netip.AddrPortFrom(held.Addr(), uint16(10_000+i)))
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Connect(fd, sa)
		}
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, fd)
	}
	for range 20 {
		if err := guest.Ask(held, "beside listeners whose locks are held", prompt); err != nil {
			t.Fatal(err)
		}
	}
	holder.Release()
	for i, l := range listeners {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		guest.Abort(clients[i])
		unix.Close(fd)
		unix.Close(l)
	}
}

// held is where the echo is that is asked beside them.
var held = netip.MustParseAddrPort("127.0.0.1:7400")
