// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

var racing = netip.MustParseAddrPort("127.0.0.1:7400")

// TestRaceListenerCloses closes a listener while connections to it are in every stage.
func TestRaceListenerCloses(t *testing.T) {
	guest.UseNull(t, true)
	for i := range 60 {
		l, err := guest.Listen(racing, 8)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				fd, err := guest.Connect(racing, 15*time.Second)
				if err == unix.EINPROGRESS {
					t.Error("connect() does not return")
				}
				if fd >= 0 {
					guest.Abort(fd)
				}
			})
		}
		// This does not wait for a condition: it varies the moment of closing from round to round.
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		unix.Close(l)
		wg.Wait()
	}
}

// churn changes addresses and routes of a connection.
const churn = `ip -n far -batch - <<end
addr del 10.97.0.2/24 dev f0
addr add 10.97.0.2/24 dev f0
end
ip -batch - <<end
addr del 10.97.0.1/24 dev n0
addr add 10.97.0.1/24 dev n0
link set n0 down
link set n0 up
link del n0
end
` + wire

// TestRaceAddresses removes addresses, links and devices while version 1 compares the subnets of connections over them.
func TestRaceAddresses(t *testing.T) {
	guest.UseNull(t, true)
	begin := time.Now()
	const version2 = "/sys/module/smc_null/parameters/version2"
	if err := os.WriteFile(version2, []byte("0"), 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.WriteFile(version2, []byte("1"), 0) }()
	build(t)
	defer guest.Run(t, "ip link del n0; ip netns del far")
	l := farListenerAt(t, netip.MustParseAddrPort("0.0.0.0:7402"))
	if err := withUserTimeout(l); err != nil {
		t.Fatal(err)
	}
	e := guest.ServeEcho(t, l)
	target := netip.MustParseAddrPort("10.97.0.2:7402")
	if err := guest.Ask(target, "before", prompt); err != nil {
		t.Errorf("before: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				// This may fail, because the network is down half of the time.
				fd, _ := guest.Connect(target, 200*time.Millisecond)
				if fd >= 0 {
					guest.Abort(fd)
				}
			}
		})
	}
	rounds := 4
	if guest.NullGuest.Full() {
		rounds = 100
	}
	for range rounds {
		guest.Run(t, churn)
	}
	t.Logf("churned after %v", time.Since(begin))
	cancel()
	wg.Wait()
	if err := guest.Ask(target, "when all is over", 20*time.Second); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	e.Close(t)
	t.Logf("over after %v", time.Since(begin))
}

// withUserTimeout makes accepted connections of a listener time out when their peer is cut off, so that they do not keep the
// namespace.
func withUserTimeout(listener int) error {
	for option, value := range map[int]int{
		unix.TCP_KEEPIDLE: 5, unix.TCP_KEEPINTVL: 2, unix.TCP_KEEPCNT: 3, unix.TCP_USER_TIMEOUT: 10_000,
	} {
		if err := unix.SetsockoptInt(listener, unix.IPPROTO_TCP, option, value); err != nil {
			return err
		}
	}
	return unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1)
}

// operations are calls that do not block. Their results do not matter, as long as they return.
var operations = []func(fd int){
	func(fd int) { _, sa := guest.Sockaddr(racing); _ = unix.Connect(fd, sa) },
	func(fd int) { _ = unix.Listen(fd, 4) },
	func(fd int) {
		if child, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC); err == nil {
			guest.Abort(child)
		}
	},
	func(fd int) { _, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT}}, 0) },
	func(fd int) { _ = unix.Sendto(fd, []byte("x"), unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, nil) },
	func(fd int) { _, _, _ = unix.Recvfrom(fd, make([]byte, 9), unix.MSG_DONTWAIT) },
	func(fd int) { _, _ = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR) },
	func(fd int) { _, _ = unix.Getpeername(fd) },
	func(fd int) { _ = unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}) },
	func(fd int) { _ = guest.Disconnect(fd) },
	func(fd int) { _ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1) },
	// By this option, another protocol may take over a socket, but not an IPv4 socket.
	func(fd int) { _ = unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_ADDRFORM, unix.AF_INET) },
}

// TestRaceOperations has three threads call any operation on one socket, in any order.
func TestRaceOperations(t *testing.T) {
	guest.UseNull(t, true)
	e := guest.NewEcho(t, racing, 64)
	defer e.Close(t)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rounds := 150
	if guest.NullGuest.Full() {
		rounds = 1000
	}
	for i := range rounds {
		fd, _, err := guest.Socket(racing)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.SetNonblock(fd, true); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for thread := range 3 {
			r := rand.New(rand.NewPCG(seed, uint64(i*3+thread)))
			wg.Go(func() {
				for range 12 {
					operations[r.IntN(len(operations))](fd)
				}
			})
		}
		wg.Wait()
		guest.Abort(fd)
	}
	if err := guest.Ask(racing, "after all that", prompt); err != nil {
		t.Error(fmt.Errorf("a well-behaved client: %w", err))
	}
}
