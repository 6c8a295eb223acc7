// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

const migrateReq = "/proc/sys/net/ipv4/tcp_migrate_req"

// setMigration lets TCP move connections of a listener that is closed to another listener of the port, or not.
func setMigration(t *testing.T, on bool) {
	t.Helper()
	value := "0"
	if on {
		value = "1"
	}
	if err := os.WriteFile(migrateReq, []byte(value), 0); err != nil {
		t.Fatal(err)
	}
}

// firstOnly directs all connections to the listener of a port that has begun to listen first.
func firstOnly(listener int) error {
	// BPF_RET | BPF_K: the number of the listener.
	prog := []unix.SockFilter{{Code: 0x06, K: 0}}
	return unix.SetsockoptSockFprog(listener, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: 1, Filter: &prog[0]})
}

// destroyRequest is the content of a SOCK_DESTROY message (struct inet_diag_req_v2) for the listener with a cookie. Where several listen
// on the port, the kernel chooses one by the remote port, and refuses if that has another cookie.
func destroyRequest(l netip.AddrPort, cookie uint64, remotePort uint16) []byte {
	const (
		ports  = 8
		source = 12
		ident  = 48
		size   = 56
	)
	b := make([]byte, size)
	b[0], b[1] = unix.AF_INET, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[4:], 1<<10) // TCP_LISTEN
	binary.BigEndian.PutUint16(b[ports:], l.Port())
	binary.BigEndian.PutUint16(b[ports+2:], remotePort)
	copy(b[source:], l.Addr().AsSlice())
	binary.NativeEndian.PutUint32(b[ident:], uint32(cookie))
	binary.NativeEndian.PutUint32(b[ident+4:], uint32(cookie>>32))
	return b
}

// destroy ends a listener as ss -K does, but at once.
func destroy(diag *netlink.Conn, l netip.AddrPort, cookie uint64) error {
	const sockDestroy = 21
	for remotePort := range uint16(1000) {
		_, err := diag.Execute(netlink.Message{
			Header: netlink.Header{Type: sockDestroy, Flags: netlink.Request | netlink.Acknowledge},
			Data:   destroyRequest(l, cookie, remotePort+1),
		})
		if !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return fmt.Errorf("the kernel does not find the listener at %s", l)
}

// greet connects n clients that have sent a byte.
func greet(t *testing.T, addr netip.AddrPort, n int) (clients []int) {
	t.Helper()
	for range n {
		fd, err := connect(addr, 0)
		if err := errors.Join(err, guest.Timeout(fd, noticeTimeout)); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Write(fd, []byte{'m'}); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, fd)
	}
	return clients
}

// answers returns how many clients get their byte back. The connections of the others have been reset.
func answers(clients []int) (n int, err error) {
	for _, fd := range clients {
		var b [1]byte
		k, rerr := unix.Read(fd, b[:])
		switch {
		case rerr == nil && k == 1 && b[0] == 'm':
			n++
		case !errors.Is(rerr, unix.ECONNRESET):
			err = errors.Join(err, fmt.Errorf("a client has got %q, %w", b[:max(k, 0)], rerr))
		}
		unix.Close(fd)
	}
	return n, err
}

// TestMigrateKilledListener ends a listener, as an administrator, with SMC connections that are not accepted, when TCP has been configured
// to move such connections to another listener of the port. While that accepts them, the application closes the first listener. Each client
// is answered or gets a reset, and the kernel reports nothing.
func TestMigrateKilledListener(t *testing.T) {
	needD(t)
	settled(t)
	needKill(t)
	t.Cleanup(func() { setMigration(t, false) })
	diag, err := netlink.Dial(unix.NETLINK_SOCK_DIAG, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer diag.Close()
	addr := netip.AddrPortFrom(here.Addr(), 7410)
	var moved int
	rounds := length(40, 400)
	for round := range rounds {
		n, err := migrate(t, diag, addr)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		moved += n
	}
	if moved == 0 {
		t.Skipf("in %d rounds, this machine was too slow to end the listener before the module's worker had emptied its queue", rounds)
	}
	t.Logf("%d connections were moved", moved)
}

// migrate returns how many of the connections of a listener that is ended and closed are accepted by another one.
func migrate(t *testing.T, diag *netlink.Conn, addr netip.AddrPort) (moved int, err error) {
	t.Helper()
	const clients = 8
	setMigration(t, false)
	killed, err := shared(addr)
	if err != nil {
		return 0, err
	}
	stays, err := shared(addr)
	if err != nil {
		return 0, err
	}
	cookie, err := unix.GetsockoptUint64(killed, unix.SOL_SOCKET, unix.SO_COOKIE)
	if err := errors.Join(err, firstOnly(killed)); err != nil {
		return 0, err
	}
	var server errgroup.Group
	server.Go(func() error { return reflect(stays) })
	fds := greet(t, addr, clients)
	setMigration(t, true)
	if err := destroy(diag, addr, cookie); err != nil {
		return 0, err
	}
	if err := unix.Close(killed); err != nil {
		return 0, err
	}
	moved, err = answers(fds)
	err = errors.Join(err, unix.Shutdown(stays, unix.SHUT_RDWR), server.Wait())
	unix.Close(stays)
	return moved, err
}
