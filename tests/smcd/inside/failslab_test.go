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

// undisturbed keeps the runtime's signals from this thread: calls that end after a while are not begun anew after one.
func undisturbed(do func() error) error {
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

// once opens a connection through a listener, on this thread both ends, and moves some pages each way.
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
		if err := across(way[0], way[1], 20_000); err != nil {
			return err
		}
	}
	return nil
}

// across moves n bytes from one end to the other, and checks that those that arrive are those that were sent.
func across(from, to, n int) error {
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
			panic(fmt.Sprintf("byte %d of %d is %#x, not %#x", i, sent, got[i], data[i])) // whatever has failed, this may not be
		}
	}
	if sent != n {
		return fmt.Errorf("%d bytes of %d were sent", sent, n)
	}
	return nil
}

// TestFailingAllocations lets one allocation after the other fail on the way of a connection, from its sockets to its end,
// whether its two ends are in one namespace, which needs no CLC messages, or not; and then any, in whatever thread. A
// connection may fail or be TCP, but no byte is wrong, and the lab finds nothing lost.
func TestFailingAllocations(t *testing.T) {
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

// starve has connections go through a listener without memory, and in the end with it, and closes the listener.
func starve(t *testing.T, l int, addr netip.AddrPort) {
	defer unix.Close(l)
	if err := guest.Timeout(l, 5*time.Second); err != nil {
		t.Fatal(err)
	}
	attempt := func() error {
		err := undisturbed(func() error { return once(l, addr) })
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

// drain accepts and closes what is left in a listener's queue.
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
