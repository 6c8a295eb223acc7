// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// attempts are operations, each of which is to survive that any one of its allocations fails.
var attempts = []struct {
	name string
	do   func(server netip.AddrPort) error
}{
	{"socket", func(server netip.AddrPort) error {
		fd, _, err := guest.Socket(server)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"socket of IPPROTO_SMC", func(netip.AddrPort) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 256)
		if err == nil {
			defer unix.Close(fd)
			err = unix.Listen(fd, 1)
		}
		return err
	}},
	{"listen", func(netip.AddrPort) error {
		fd, err := guest.Listen(netip.MustParseAddrPort("127.0.0.1:7501"), 4)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}},
	{"connect, send, receive", func(server netip.AddrPort) error { return guest.Ask(server, "short of memory", 15*time.Second) }},
	{"accept", func(netip.AddrPort) error {
		addr := netip.MustParseAddrPort("127.0.0.1:7502")
		l, err := guest.Listen(addr, 4)
		if err != nil {
			return err
		}
		defer unix.Close(l)
		fd, sa, err := guest.Socket(addr)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		if err := errors.Join(unix.SetNonblock(fd, true)); err != nil {
			return err
		}
		if err := unix.Connect(fd, sa); !errors.Is(err, unix.EINPROGRESS) {
			return err
		}
		tv := unix.NsecToTimeval(int64(15 * time.Second))
		if err := unix.SetsockoptTimeval(l, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return err
		}
		child, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if err == nil {
			guest.Abort(child)
		}
		return err
	}},
}

// TestFailingAllocations lets one allocation after the other fail that the calls of an application make, and then any,
// in whatever thread of the kernel, and in programs that ask and set by netlink. The lab looks for leaks afterwards.
func TestFailingAllocations(t *testing.T) {
	guest.LoadNull(t, true)
	guest.NeedFailslab(t)
	// TCP sends no FIN that it has no memory for when a socket is closed, not later either: that socket stays, and its peer
	// hears nothing.
	const lost = 30
	guest.NothingLeft(t, lost)
	server := netip.MustParseAddrPort("127.0.0.1:7500")
	e := guest.NewEcho(t, server, 64)
	defer e.Close(t)
	for _, a := range attempts {
		t.Run(a.name, func(t *testing.T) { guest.FailEach(t, func() error { return a.do(server) }) })
	}
	t.Run("anywhere", func(t *testing.T) { anywhere(t, server) })
	if err := guest.Ask(server, "with memory again", prompt); err != nil {
		t.Error(err)
	}
	if n := e.Abandon(t); n > lost+1 {
		t.Errorf("%d connections have not heard of their end", n)
	}
}

func anywhere(t *testing.T, server netip.AddrPort) {
	guest.FailAnywhere(t, "smc", func() {
		for range 10 {
			// Any of it may fail, or be reset. It has to return.
			_ = guest.Ask(server, "short of memory", 2*time.Second)
			for _, args := range [][]string{{"smcss", "-a"}, {"smc_pnet", "add", "X", "eth", "lo"}, {"smc_pnet", "flush"}, {"smcr", "stats"}} {
				_ = exec.CommandContext(t.Context(), args[0], args[1:]...).Run()
			}
		}
	})
}
