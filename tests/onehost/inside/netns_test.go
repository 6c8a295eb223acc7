// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// far is the address of the server: in another namespace of this host, at the other end of a wire.
var far = netip.MustParseAddrPort("10.97.0.2:7000")

// lay makes the namespace, and wire makes the link between the two.
const lay = "ip netns add far; ip -n far link set lo up\n" + wire

const wire = `ip -batch - <<end
link add n0 type veth peer name f0 netns far
addr add 10.97.0.1/24 dev n0
link set n0 up
end
ip -n far -batch - <<end
addr add 10.97.0.2/24 dev f0
link set f0 up
end
`

// build makes both after those of an earlier test have disappeared, because the kernel removes them asynchronously.
func build(t *testing.T) {
	t.Helper()
	guest.Await(t, noticeTimeout, func() string {
		if _, err := os.Stat("/sys/class/net/n0"); err == nil {
			return "the wire of an earlier test is still there"
		}
		return ""
	})
	guest.Run(t, lay)
}

// inFar calls do in that namespace.
func inFar(do func() error) error { return guest.InNamespace("far", do) }

// farListener listens in the namespace.
func farListener(t *testing.T) int {
	t.Helper()
	return farListenerAt(t, far)
}

func farListenerAt(t *testing.T, addr netip.AddrPort) (l int) {
	t.Helper()
	err := inFar(func() (err error) {
		l, err = listen(addr, 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// span makes a connection from this namespace into the other.
func span(t *testing.T, l int) couple {
	t.Helper()
	client, server := pairAt(t, l, far, 0)
	c, err := newCouple(client, server, true, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestPolicy tries all values of net.smc.loopback on both sides. The data passes with each.
func TestPolicy(t *testing.T) {
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "sysctl -qw net.smc.loopback=2; ip netns del far") })
	l := farListener(t)
	defer unix.Close(l)
	for client := range 3 {
		for server := range 3 {
			guest.Run(t, fmt.Sprintf("sysctl -qw net.smc.loopback=%d; ip netns exec far sysctl -qw net.smc.loopback=%d", client, server))
			before := count(t)
			c := span(t, l)
			if err := c.exchange(300_000, always(writers["send"], 10_000), always(readers["recv"], 10_000)); err != nil {
				t.Errorf("%d and %d: %v", client, server, err)
			}
			c.close()
			now := count(t)
			smcd, fell := now.clients-before.clients, now.fallbacks-before.fallbacks
			if (smcd == 1) != (client == 2 && server == 2) || smcd+fell != 1 {
				t.Errorf("loopback=%d to loopback=%d: %d connections of SMC-D, %d that fell back", client, server, smcd, fell)
			}
		}
	}
}

// TestPolicyLater has a listener in a fresh namespace whose connections have no device. So the hooks of the TCP option are not there. Once
// they may use one, the listener's next connection is SMC-D, and later one is TCP again.
func TestPolicyLater(t *testing.T) {
	settled(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	set := func(loopback int) {
		guest.Run(t, fmt.Sprintf("ip netns exec far sysctl -qw net.smc.loopback=%d", loopback))
	}
	set(0)
	l := farListener(t)
	defer unix.Close(l)
	for i, loopback := range []int{0, 2, 0} {
		set(loopback)
		before := count(t)
		c := span(t, l)
		if err := c.exchange(1000, always(writers["send"], 1000), always(readers["recv"], 1000)); err != nil {
			t.Error(err)
		}
		c.close()
		if smcd := count(t).clients - before.clients; (smcd == 1) != (loopback == 2) {
			t.Errorf("connection %d, loopback=%d: %d of SMC-D", i, loopback, smcd)
		}
	}
}

// TestPolicyHere tries all values of net.smc.loopback for connections within a namespace.
func TestPolicyHere(t *testing.T) {
	settled(t)
	t.Cleanup(func() { guest.Run(t, "sysctl -qw net.smc.loopback=2") })
	// The third is IPv4 on an IPv6 socket, as Java uses it.
	for _, addr := range []netip.AddrPort{
		here, netip.MustParseAddrPort("[::1]:7000"), netip.MustParseAddrPort("[::ffff:127.0.0.1]:7000"),
	} {
		for policy := range 3 {
			guest.Run(t, fmt.Sprintf("sysctl -qw net.smc.loopback=%d", policy))
			before := count(t)
			clients, servers := pairs(t, addr, 1, 0)
			if err := ping(clients[0], servers[0], 7); err != nil {
				t.Error(err)
			}
			guest.Abort(clients[0])
			guest.Abort(servers[0])
			if smcd := count(t).clients - before.clients; (smcd == 1) != (policy != 0) {
				t.Errorf("%s, loopback=%d: %d connections of SMC-D", addr, policy, smcd)
			}
		}
	}
}

// TestNamespaces deletes a namespace while connections into it are open, or being closed. Both ends get an error, and nothing
// is left.
func TestNamespaces(t *testing.T) {
	settled(t)
	before, err := guest.Objects("net_namespace")
	if err != nil {
		t.Fatal(err)
	}
	for i := range length(6, 60) {
		build(t)
		l := farListener(t)
		var open []couple
		for range 3 {
			c := span(t, l)
			if err := c.exchange(1000, always(writers["send"], 1000), always(readers["recv"], 1000)); err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		unix.Close(l)
		// One has unread data, one is closed here, one there: those linger when the namespace goes.
		if err := open[0].write(100); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			open[1][0].close()
			open[2][1].close()
			guest.Run(t, "ip netns del far")
			open[0].close()
			open[1][1].close()
			open[2][0].close()
		} else {
			guest.Run(t, "ip netns del far")
			for _, c := range open {
				c.close()
			}
		}
	}
	namespacesFreed(t, before, 100*time.Second)
}

// write writes at the second end.
func (c couple) write(n int64) error { return c[1].write(n, always(writers["send"], int(n))) }

// TestNamespacesKilled kills a server together with its namespace. The client gets an error.
func TestNamespacesKilled(t *testing.T) {
	settled(t)
	for range length(4, 40) {
		build(t)
		cmd := exec.CommandContext(t.Context(), "ip", "netns", "exec", "far", os.Args[0])
		cmd.Env = append(os.Environ(), "SMCKIT_VICTIM=accepts "+far.String())
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
			t.Fatalf("the victim says %q, %v", line, err)
		}
		m := killing{kind: "accepts", addr: far, after: 50_000}
		reached, done := make(chan struct{}), make(chan error, 1)
		go func() { done <- m.survive(-1, -1, reached) }()
		select {
		case <-reached:
		case err := <-done:
			t.Fatal(err)
		}
		guest.Run(t, fmt.Sprintf("kill -9 %d; ip netns del far", cmd.Process.Pid))
		_ = cmd.Wait() // the error is that it was killed
		ctx, cancel := context.WithTimeout(t.Context(), noticeTimeout)
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-ctx.Done():
			t.Error("the survivor has not noticed it")
		}
		cancel()
	}
}

// ended reads until the connection ends, and returns the error.
func ended(e *end) error {
	err := e.read(1<<40, always(readers["recv"], 1000))
	if err == nil {
		return errors.New("no end")
	}
	return err
}

// needKill skips the test where an administrator cannot end TCP connections. ss does not report that: it has to be tried.
func needKill(t *testing.T) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.9:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	guest.Run(t, "ss -K -t state established dst 127.0.0.9")
	out, err := exec.Command("ss", "-t", "-H", "state", "established", "dst", "127.0.0.9").CombinedOutput()
	if err != nil {
		t.Fatalf("ss: %v: %s", err, out)
	}
	if len(out) > 0 {
		t.Skip("this kernel was built without INET_DIAG_DESTROY")
	}
}

// TestAbort ends the TCP connection below SMC, as an administrator can: both ends get an error, whether they wait or read
// later.
func TestAbort(t *testing.T) {
	settled(t)
	needKill(t)
	for _, waiting := range []bool{true, false} {
		for _, side := range []string{"sport", "dport"} {
			onlySMC(t, 1)
			c := couples(t, 1, 0, true)[0]
			results := make(chan error, 2)
			wait := func() {
				for _, e := range c {
					go func() { results <- ended(e) }()
				}
			}
			if waiting {
				wait()
			}
			guest.Run(t, fmt.Sprintf("ss -K -t state established '( %s = :%d )'", side, here.Port()))
			if !waiting {
				wait()
			}
			for range c {
				select {
				case err := <-results:
					if !errors.Is(err, unix.ECONNRESET) && !errors.Is(err, unix.ECONNABORTED) {
						t.Errorf("killed by %s, waiting=%v: %v", side, waiting, err)
					}
				case <-time.After(noticeTimeout):
					t.Fatalf("killed by %s, waiting=%v: an end has not noticed it", side, waiting)
				}
			}
		}
	}
}

// inNewNamespace calls do in a network namespace of its own, where the loopback device is up.
func inNewNamespace(do func() error) error {
	return guest.InNewNamespace(func() error {
		// A child inherits the namespace of the thread.
		if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
			return fmt.Errorf("lo: %w: %s", err, out)
		}
		return do()
	})
}

// leftovers opens sockets in every state, some of them in the middle of their handshake.
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
	// Connect one to an address without a host.
	fd, sa, err := guest.Socket(netip.MustParseAddrPort("127.0.0.9:9"))
	if err != nil {
		return fds, err
	}
	_ = unix.SetNonblock(fd, true)
	_ = unix.Connect(fd, sa)
	return append(fds, fd), nil
}

// TestNamespacesLeftOpen makes and ends namespaces with traffic in them, and with sockets that a careless program leaves open.
func TestNamespacesLeftOpen(t *testing.T) {
	settled(t)
	before, err := guest.Objects("net_namespace")
	if err != nil {
		t.Fatal(err)
	}
	for i := range length(12, 100) {
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
	namespacesFreed(t, before, 60*time.Second)
}

// namespacesFreed waits until there are at most two more namespaces than before: the kernel frees the last one only with the
// next, and another may belong to the thread that started the test.
func namespacesFreed(t *testing.T, before int, within time.Duration) {
	t.Helper()
	guest.Await(t, within, func() string {
		if n, err := guest.Objects("net_namespace"); err != nil || n > before+2 {
			return fmt.Sprintf("%d namespaces, before there were %d, %v", n, before, err)
		}
		return ""
	})
}
