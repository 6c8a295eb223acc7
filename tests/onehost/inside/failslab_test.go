// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// withSignalsBlocked calls do while the signals of Go's runtime are blocked for this thread: a signal would restart a call's
// timeout.
func withSignalsBlocked(do func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var urgent, old unix.Sigset_t
	urgent.Val[0] = 1 << (unix.SIGURG - 1)
	if err := unix.PthreadSigmask(unix.SIG_BLOCK, &urgent, &old); err != nil {
		return err
	}
	err := do()
	return errors.Join(err, unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil))
}

// once opens a connection through a listener, with both ends on this thread, and transfers some pages in each direction.
func once(l int, addr netip.AddrPort) (err error) {
	client, sa, err := socket(addr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(client)
	if err := errors.Join(guest.Timeout(client, 5*time.Second), unix.Connect(client, sa)); err != nil {
		return err
	}
	server, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(server)
	if err := guest.Timeout(server, 5*time.Second); err != nil {
		return err
	}
	for _, way := range [][2]int{{client, server}, {server, client}} {
		if err := transfer(way[0], way[1], 20_000); err != nil {
			return err
		}
	}
	return nil
}

// transfer moves n bytes from one end to the other, and checks them.
func transfer(from, to, n int) error {
	data, got := make([]byte, n), make([]byte, n)
	for i := range data {
		data[i] = byte(i * 7)
	}
	sent, err := unix.SendmsgN(from, data, nil, nil, unix.MSG_NOSIGNAL)
	if err != nil {
		return err
	}
	received := 0
	for received < sent {
		m, _, err := unix.Recvfrom(to, got[received:sent], 0)
		if err != nil {
			return err
		}
		if m == 0 {
			return fmt.Errorf("the end after %d bytes of %d", received, sent)
		}
		received += m
	}
	for i := range sent {
		if got[i] != data[i] {
			panic(fmt.Sprintf("byte %d of %d is %#x, not %#x", i, sent, got[i], data[i])) // no failed allocation may cause this
		}
	}
	if sent != n {
		return fmt.Errorf("%d bytes of %d were sent", sent, n)
	}
	return nil
}

// TestFailingAllocations makes one allocation after the other fail during the life of a connection, from its sockets to its
// end. It does this with both ends in one namespace, which needs no CLC messages, and in two, and then with any allocation, in
// any thread. A connection may fail or use TCP, but no byte may be wrong, and the lab must find no leak. In the guest where all
// connections use TCP, it also does this for each call separately.
func TestFailingAllocations(t *testing.T) {
	if overTCP {
		failingCalls(t)
		return
	}
	settled(t)
	guest.NeedFailslab(t)
	l, err := listen(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("one namespace", func(t *testing.T) { starve(t, l, here) })
	if overR {
		return
	}
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	t.Run("two namespaces", func(t *testing.T) { starve(t, farListener(t), far) })
}

// starve opens connections through a listener while allocations fail, then one while they succeed, and closes the listener.
func starve(t *testing.T, l int, addr netip.AddrPort) {
	defer unix.Close(l)
	if err := guest.Timeout(l, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	attempt := func() error {
		err := withSignalsBlocked(func() error { return once(l, addr) })
		drain(l)
		return err
	}
	t.Run("each", func(t *testing.T) { guest.FailEach(t, attempt) })
	t.Run("anywhere", func(t *testing.T) {
		guest.FailAnywhere(t, "smc", func() {
			for range length(50, 1000) {
				_ = attempt()
			}
			for _, args := range [][]string{{"smcss", "-aD"}, {"smcd", "linkgroup"}, {"smcd", "device"}, {"smcd", "stats"}} {
				_ = exec.CommandContext(context.Background(), args[0], args[1:]...).Run()
			}
		})
	})
	before := count(t)
	if err := attempt(); err != nil {
		t.Errorf("with memory again: %v", err)
	}
	if now := count(t); now.clients != before.clients+1 {
		t.Errorf("with memory again it is not SMC-D: %+v became %+v", before, now)
	}
}

// drain accepts and closes the connections in a listener's queue.
func drain(l int) {
	for {
		p := []unix.PollFd{{Fd: int32(l), Events: unix.POLLIN}}
		if n, err := unix.Poll(p, 0); n != 1 && !errors.Is(err, unix.EINTR) {
			return
		}
		if fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC); err == nil {
			guest.Abort(fd)
		}
	}
}

// calls are sequences of system calls of applications. Each must survive the failure of any one of its allocations. They
// connect to server.
var calls = []struct {
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

// failingCalls makes one allocation after the other fail in the calls of an application, and then any allocation, in any thread
// of the kernel, and in programs that use netlink.
func failingCalls(t *testing.T) {
	guest.LoadNull(t, true)
	guest.NeedFailslab(t)
	// If TCP has no memory for the FIN when a socket is closed, it never sends it: that socket stays, and its peer does not
	// notice.
	const lost = 30
	guest.NothingLeft(t, lost)
	server := netip.MustParseAddrPort("127.0.0.1:7500")
	e := guest.NewEcho(t, server, 64)
	defer e.Close(t)
	for _, a := range calls {
		t.Run(a.name, func(t *testing.T) { guest.FailEach(t, func() error { return a.do(server) }) })
	}
	t.Run("anywhere", func(t *testing.T) { anywhere(t, server) })
	if err := guest.Ask(server, "with memory again", prompt); err != nil {
		t.Error(err)
	}
	if n := e.Abandon(t); n > lost+1 {
		t.Errorf("%d connections have not got an error", n)
	}
}

// anywhere makes any allocation of our module fail while applications and commands use the module.
func anywhere(t *testing.T, server netip.AddrPort) {
	guest.FailAnywhere(t, "smc", func() {
		for range 10 {
			// The call may fail or be reset, but it must return.
			_ = guest.Ask(server, "short of memory", 2*time.Second)
			for _, args := range [][]string{{"smcss", "-a"}, {"smc_pnet", "add", "X", "eth", "lo"}, {"smc_pnet", "flush"}, {"smcr", "stats"}} {
				_ = exec.CommandContext(t.Context(), args[0], args[1:]...).Run()
			}
		}
	})
}
