// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// The tests here are for classes of faults that AF_SMC has had in Linux, and that other tests do not cover:
// docs/security.md lists all classes.

// sockmap is a BPF map of sockets. It replaces sk_user_data and the functions of the socket's protocol.
type sockmap int

func bpf(cmd int, attr []byte) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_BPF, uintptr(cmd), uintptr(unsafe.Pointer(&attr[0])), uintptr(len(attr)))
	if errno != 0 {
		return -1, errno
	}
	return int(fd), nil
}

func newSockmap(t *testing.T) sockmap {
	t.Helper()
	attr := make([]byte, 72)
	for i, v := range []uint32{unix.BPF_MAP_TYPE_SOCKMAP, 4, 4, 8} { // type, sizes of key and value, entries
		binary.NativeEndian.PutUint32(attr[4*i:], v)
	}
	fd, err := bpf(unix.BPF_MAP_CREATE, attr)
	if err != nil {
		t.Skipf("this kernel has no maps of sockets: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return sockmap(fd)
}

// put adds a socket. It returns an error if the kernel does not take the socket.
func (m sockmap) put(key uint32, fd int) error {
	value := uint32(fd)
	attr := make([]byte, 32)
	binary.NativeEndian.PutUint32(attr, uint32(m))
	binary.NativeEndian.PutUint64(attr[8:], uint64(uintptr(unsafe.Pointer(&key))))
	binary.NativeEndian.PutUint64(attr[16:], uint64(uintptr(unsafe.Pointer(&value))))
	_, err := bpf(unix.BPF_MAP_UPDATE_ELEM, attr)
	return err
}

// refuses checks that the map does not take a socket whose connection is SMC.
func (m sockmap) refuses(t *testing.T, key uint32, fd int) {
	t.Helper()
	if err := m.put(key, fd); !errors.Is(err, unix.EOPNOTSUPP) {
		t.Errorf("entry %d, an end of an SMC connection: %v, want EOPNOTSUPP", key, err)
	}
}

// TestClassUserData has BPF use the sk_user_data of listeners while connections come, and try to use that of connections: the map
// must refuse these, since BPF would take over the protocol's functions. Data must arrive, and closing the sockets must leave the
// map and its owner unharmed.
func TestClassUserData(t *testing.T) {
	ours.Need(t)
	needD(t)
	m := newSockmap(t)
	for _, c := range []struct {
		name                         string
		listening, client, accepting bool // which are put into the map
	}{
		{"client", false, true, false},
		{"accepted", false, false, true},
		{"both ends", false, true, true},
		{"listener", true, false, false},
		{"all", true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := listen(here, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(l)
			if c.listening {
				if err := m.put(0, l); err != nil {
					t.Errorf("a listener: %v", err)
				}
			}
			for range length(3, 100) {
				client, server := pairAt(t, l, here, 0)
				if c.client {
					m.refuses(t, 1, client)
				}
				if c.accepting {
					m.refuses(t, 2, server)
				}
				if err := errors.Join(ping(client, server, 1), ping(server, client, 2)); err != nil {
					t.Error(err)
				}
				unix.Close(client)
				unix.Close(server)
			}
		})
	}
}

// TestClassUserDataTCP has the map take sockets that are TCP: those that have been disconnected from an SMC connection, and listen
// or have connected again, and those that have fallen back.
func TestClassUserDataTCP(t *testing.T) {
	ours.Need(t)
	needD(t)
	m := newSockmap(t)
	l, err := listen(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	listens, connects := pairAt(t, l, here, 0)
	defer unix.Close(listens)
	defer unix.Close(connects)
	m.refuses(t, 0, listens)
	m.refuses(t, 1, connects)
	if err := errors.Join(guest.Disconnect(listens), guest.Disconnect(connects), unix.Listen(listens, 1)); err != nil {
		t.Fatal(err)
	}
	if err := m.put(0, listens); err != nil {
		t.Errorf("a listener that was an end of an SMC connection: %v", err)
	}
	ours.Set(t, "net.smc.loopback", "0")
	_, sa := guest.Sockaddr(here)
	if err := guest.ConnectSocket(connects, sa); err != nil {
		t.Fatal(err)
	}
	accepted, err := guest.Accept(l)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(accepted)
	client, server := pairAt(t, l, here, 0)
	defer unix.Close(client)
	defer unix.Close(server)
	for key, fd := range []int{connects, accepted, client, server} {
		if err := m.put(uint32(key+1), fd); err != nil {
			t.Errorf("entry %d, an end of a connection that has fallen back: %v", key+1, err)
		}
	}
	if err := errors.Join(ping(connects, accepted, 1), ping(accepted, connects, 2), ping(client, server, 3), ping(server, client, 4)); err != nil {
		t.Error(err)
	}
}

// TestClassIPv6 has accepted IPv6 sockets change the options that TCP keeps in memory beside the socket. A child whose
// pointer to that memory is its listener's, or is wrong, would change the listener's, or anything.
func TestClassIPv6(t *testing.T) {
	ours.Need(t)
	needD(t)
	addr := netip.MustParseAddrPort("[::1]:7080")
	l, err := listen(addr, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(l)
	const before, after = 0x20, 0x40
	if err := unix.SetsockoptInt(l, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, before); err != nil {
		t.Fatal(err)
	}
	for range length(20, 1000) {
		client, server := pairAt(t, l, addr, 0)
		if err := unix.SetsockoptInt(server, unix.IPPROTO_IPV6, unix.IPV6_TCLASS, after); err != nil {
			t.Error(err)
		}
		for fd, want := range map[int]int{l: before, server: after, client: 0} {
			if got, err := unix.GetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_TCLASS); got != want || err != nil {
				t.Errorf("traffic class %#x, want %#x, %v", got, want, err)
			}
		}
		if err := errors.Join(ping(client, server, 1), ping(server, client, 2)); err != nil {
			t.Error(err)
		}
		unix.Close(client)
		unix.Close(server)
	}
}

// TestClassDump lists sockets, connections and link groups in full while they come and go.
func TestClassDump(t *testing.T) {
	ours.Need(t)
	l, err := listen(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for _, args := range [][]string{{"smcss", "-aD"}, {"smcss", "-aR"}, {"smcss", "-ad"}, {"smcd", "-d", "linkgroup"}, {"smcr", "-d", "linkgroup"}} {
		wg.Go(func() {
			for ctx.Err() == nil {
				if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil && ctx.Err() == nil {
					t.Errorf("%v: %v: %s", args, err, out)
					return
				}
			}
		})
	}
	for range length(60, 3000) {
		client, server := pairAt(t, l, here, 0)
		if err := ping(client, server, 1); err != nil {
			t.Error(err)
		}
		guest.Abort(client)
		unix.Close(server)
	}
	unix.Close(l)
	cancel()
	wg.Wait()
}

// TestClassPriority checks the niceness of the kernel's threads that run handshakes. Peers decide how much work that is, so it
// must not run before the programs of this host.
func TestClassPriority(t *testing.T) {
	ours.Need(t)
	needD(t)
	build(t)
	t.Cleanup(func() { guest.Run(t, "ip netns del far") })
	l := farListener(t)
	defer unix.Close(l)
	guest.Await(t, noticeTimeout, func() string {
		client, err := connect(far, 0)
		if err != nil {
			t.Fatal(err)
		}
		server, err := guest.Accept(l)
		if err != nil {
			t.Fatal(err)
		}
		guest.Abort(client)
		unix.Close(server)
		// The name of a worker contains the queue for which it has worked last.
		out := guest.Run(t, "for p in /proc/[0-9]*; do read -r c <$p/comm || continue; case $c in kworker/*[+-]smc) "+
			"ps -o ni= -p ${p#/proc/} || :;; esac; done 2>/dev/null")
		niceness := strings.Fields(out)
		for _, n := range niceness {
			if n != "0" {
				t.Errorf("a worker has a niceness of %s", n)
			}
		}
		if len(niceness) == 0 {
			return "no worker has worked for handshakes"
		}
		return ""
	})
}

// pnetChurn adds devices to the PNET table, removes the devices, and deletes the entries, so that both ways of removing an
// entry race.
const pnetChurn = `for i in $(seq %d); do
	ip link add churn0 type dummy
	smc_pnet add CHURN eth churn0 2>/dev/null &
	ip link del churn0 &
	smc_pnet show >/dev/null &
	wait
	smc_pnet del CHURN eth churn0 2>/dev/null || :
done`

// TestClassPNET changes the PNET table and removes the devices that it names, while connections use it. A table whose lock is
// taken within and outside of RTNL would end in a deadlock.
func TestClassPNET(t *testing.T) {
	ours.Need(t)
	needD(t)
	l, err := listen(here, 0)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- reflect(l) }()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			if err := pingEcho(here, 7); err != nil {
				t.Error(err)
				return
			}
		}
	})
	guest.Run(t, "modprobe -q dummy || :\n"+fmt.Sprintf(pnetChurn, length(6, 300)))
	cancel()
	wg.Wait()
	if err := unix.Shutdown(l, unix.SHUT_RDWR); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	unix.Close(l)
}
