// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"net/netip"
	"runtime"
	"testing"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// TestHeldGroup ends a link group while a thread of an unprivileged user holds the lock of one connection's sock: the other connections
// notice at once, and that one later.
func TestHeldGroup(t *testing.T) {
	if !overR {
		t.Skip("no link group of SMC-D ends while connections are there")
	}
	const n = 4
	clients, servers, err := pairsOfNobody(netip.AddrPortFrom(here.Addr(), 7050), n)
	t.Cleanup(func() {
		for _, fd := range append(clients, servers...) {
			unix.Close(fd)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	holder := guest.NewHolder(t)
	if err := holder.Hold(clients[0], servers[0]); err != nil {
		t.Fatal(err)
	}
	guest.Run(t, "rdma link delete self0; rdma link delete self1")
	for i, fd := range append(clients[1:n:n], servers[1:]...) {
		wait := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if ready, err := unix.Poll(wait, int(noticeTimeout.Milliseconds())); ready != 1 || err != nil {
			t.Fatalf("end %d has not noticed the end of its link group: %v", i, err)
		}
	}
	holder.Release()
	var b [1]byte
	for i, fd := range append(clients[:n:n], servers...) {
		if _, _, err := unix.Recvfrom(fd, b[:], 0); !errors.Is(err, unix.ECONNABORTED) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("end %d: %v", i, err)
		}
	}
	guest.Run(t, "for i in 0 1; do rdma link add self$i type rxe netdev v$i; done")
}

// pairsOfNobody is pairs for an unprivileged user. It returns the sockets that are open if it fails, too.
func pairsOfNobody(addr netip.AddrPort, n int) (clients, servers []int, err error) {
	err = guest.AsNobody(func() error {
		l, err := listen(addr, 0)
		if err != nil {
			return err
		}
		defer unix.Close(l)
		for range n {
			fd, err := connect(addr, 0)
			if err != nil {
				return err
			}
			clients = append(clients, fd)
			if fd, err = guest.Accept(l); err != nil {
				return err
			}
			servers = append(servers, fd)
		}
		return nil
	})
	return clients, servers, err
}

// TestHeldListeners connects to a thousand listeners of an unprivileged user while a thread of his holds the lock of each listener's sock.
// Other handshakes go on meanwhile.
func TestHeldListeners(t *testing.T) {
	guest.UseNull(t, true)
	e := guest.NewEcho(t, held, 64)
	defer e.Close(t)
	guest.RaiseFiles(t, 1<<14)
	var listeners, clients []int
	n := guest.HeldSockets(t)
	err := guest.AsNobody(func() error {
		for i := range n {
			fd, err := guest.Listen(netip.AddrPortFrom(held.Addr(), uint16(10_000+i)), 4)
			if err != nil {
				return err
			}
			listeners = append(listeners, fd)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	holder := guest.NewHolder(t)
	if err := holder.Hold(listeners...); err != nil {
		t.Fatal(err)
	}
	for i := range n {
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

// TestHeldConnects has two threads connect one socket while another holds the lock of its sock: first to an address that TCP refuses, then
// to a server. The failure of the first call does not undo the second one, which may fail because the first is in progress.
func TestHeldConnects(t *testing.T) {
	guest.UseNull(t, true)
	e := guest.NewEcho(t, held, 64)
	defer e.Close(t)
	// Which thread gets the lock first differs from round to round.
	for i := range 20 {
		if err := connectTwice(t); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
}

// connectTwice does so once, and returns what the second thread finds.
func connectTwice(t *testing.T) error {
	fd, server, err := guest.Socket(held)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	holder := guest.NewHolder(t)
	if err := holder.Hold(fd); err != nil {
		t.Fatal(err)
	}
	refused, thread := connectInThread(fd, &unix.SockaddrInet4{Port: int(held.Port()), Addr: [4]byte{255, 255, 255, 255}})
	awaitCall(t, thread, unix.SYS_CONNECT, refused)
	connected, thread := connectInThread(fd, server)
	awaitCall(t, thread, unix.SYS_CONNECT, connected)
	holder.Release()
	if err := <-refused; err == nil || errors.Is(err, unix.EALREADY) {
		t.Fatalf("connect() to all hosts: %v", err)
	}
	err = <-connected
	if errors.Is(err, unix.EALREADY) {
		err = guest.ConnectSocket(fd, server)
	}
	if err != nil {
		return err
	}
	const text = "after another thread's attempt"
	if err := guest.WriteAll(fd, []byte(text)); err != nil {
		return err
	}
	_, err = guest.ReadFull(fd, len(text))
	return err
}

// connectInThread connects a socket in a thread of its own.
func connectInThread(fd int, sa unix.Sockaddr) (result <-chan error, thread int) {
	done, id := make(chan error, 1), make(chan int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		id <- unix.Gettid()
		done <- guest.ConnectSocket(fd, sa)
	}()
	return done, <-id
}

// held is the address of the echo server beside them.
var held = netip.MustParseAddrPort("127.0.0.1:7400")
