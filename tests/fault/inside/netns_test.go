// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"fmt"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// inNewNamespace does something in a network namespace of its own, where the loopback device is up.
func inNewNamespace(do func() error) error {
	return guest.InNewNamespace(func() error {
		// A child inherits the namespace of the thread.
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			return fmt.Errorf("lo: %w: %s", err, out)
		}
		return do()
	})
}

// leftovers opens sockets in every state, of which some are in the middle of their handshake, and returns them.
func leftovers(addr netip.AddrPort) (fds []int, err error) {
	l, err := guest.Listen(addr, 16)
	if err != nil {
		return nil, err
	}
	fds = append(fds, l)
	for range 4 {
		fd, sa, err := guest.Socket(addr)
		if err != nil {
			return fds, err
		}
		fds = append(fds, fd)
		if err := unix.SetNonblock(fd, true); err != nil {
			return fds, err
		}
		if err := unix.Connect(fd, sa); err != nil && err != unix.EINPROGRESS {
			return fds, fmt.Errorf("connect: %w", err)
		}
	}
	// One to where nobody answers.
	fd, sa, err := guest.Socket(netip.MustParseAddrPort("127.0.0.9:9"))
	if err != nil {
		return fds, err
	}
	_ = unix.SetNonblock(fd, true)
	_ = unix.Connect(fd, sa)
	return append(fds, fd), nil
}

// TestNamespaces makes and ends namespaces with traffic in them, and with what a careless program leaves.
func TestNamespaces(t *testing.T) {
	guest.UseNull(t, true)
	before, err := guest.Objects("net_namespace")
	if err != nil {
		t.Fatal(err)
	}
	rounds := 12
	if guest.NullGuest.Full() {
		rounds = 100
	}
	for i := range rounds {
		var fds []int
		err := inNewNamespace(func() (err error) {
			e := netip.MustParseAddrPort("127.0.0.1:7200")
			fds, err = leftovers(netip.MustParseAddrPort("127.0.0.1:7201"))
			if err != nil || i%2 == 0 {
				return err
			}
			srv := guest.NewEcho(t, e, 16)
			err = guest.Ask(e, "in a namespace", prompt)
			srv.Close(t)
			return err
		})
		// In odd rounds the sockets outlive their thread.
		for _, fd := range fds {
			unix.Close(fd)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The kernel may free the last one with the next only. One more is spare.
	const spare = 2
	guest.Await(t, 60*time.Second, func() string {
		if n, err := guest.Objects("net_namespace"); err != nil || n > before+spare {
			return fmt.Sprintf("%d namespaces, before there were %d, %v", n, before, err)
		}
		return ""
	})
}
