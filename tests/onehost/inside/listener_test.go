// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// queued describes the content of TCP's accept queue. A worker takes connections that are not accepted out of it.
func queued(listener int) string {
	info, err := unix.GetsockoptTCPInfo(listener, unix.SOL_TCP, unix.TCP_INFO)
	if err != nil {
		return err.Error()
	}
	if info.Unacked > 0 {
		return fmt.Sprintf("%d connections are in TCP's accept queue", info.Unacked)
	}
	return ""
}

// TestKilledListener ends a listener, as an administrator, with a connection that was not accepted. TCP does not inform our
// module, and leaves the socket in a state where little works with TCP either. Whatever the application tries, nothing is left
// of the listener, and the kernel reports nothing.
func TestKilledListener(t *testing.T) {
	settled(t)
	needKill(t)
	dead, alive := netip.MustParseAddrPort("127.0.0.1:7021"), netip.MustParseAddrPort("127.0.0.1:7022")
	// A second listener keeps the netfilter hooks registered.
	other, err := listen(alive, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(other)
	for name, try := range map[string]func(fd int){
		"close":            func(int) {},
		"another protocol": func(fd int) { _ = unix.SetsockoptString(fd, unix.SOL_TCP, unix.TCP_ULP, "tls") },
		"connect": func(fd int) {
			_, sa := guest.Sockaddr(alive)
			_ = unix.Connect(fd, sa)
		},
		"listen": func(fd int) {
			_ = unix.Listen(fd, 10)
			if c, err := connect(dead, 0); err == nil {
				unix.Close(c)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fd, err := listen(dead, 0)
			if err != nil {
				t.Fatal(err)
			}
			waiting, err := connect(dead, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(waiting)
			guest.Await(t, 10*time.Second, func() string { return queued(fd) })
			guest.Run(t, fmt.Sprintf("ss -K -t state listening '( sport = :%d )'", dead.Port()))
			try(fd)
			unix.Close(fd)
			if c, err := connect(dead, 0); !errors.Is(err, unix.ECONNREFUSED) {
				t.Errorf("connecting to it: %v", err)
				unix.Close(c)
			}
		})
	}
}

// TestDeferred has more silent clients connect to a listener with TCP_DEFER_ACCEPT than it has room for.
func TestDeferred(t *testing.T) {
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	l := farListener(t)
	defer unix.Close(l)
	const backlog = 4
	const clients = 2*backlog + 1
	if err := errors.Join(unix.SetsockoptInt(l, unix.SOL_TCP, unix.TCP_DEFER_ACCEPT, 60), unix.Listen(l, backlog)); err != nil {
		t.Fatal(err)
	}
	for range clients {
		c, err := connect(far, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(c)
	}
	begin := time.Now()
	for i := range clients - backlog - 1 {
		s, err := guest.Accept(l)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(s)
		if waited := time.Since(begin); waited > 30*time.Second {
			t.Fatalf("connection %d was accepted after %s", i, waited)
		}
	}
}
