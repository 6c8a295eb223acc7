// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// connect answers connect(): if the address is outside of the rules, it makes the socket fall back to TCP first.
func (w *worker) connect(r request) {
	defer w.proceed(r.id)
	// Read no more than the longest address that the rules know. The kernel checks the rest of the length.
	raw, err := readMemory(r.pid, r.args[1], int(min(uint32(r.args[2]), unix.SizeofSockaddrInet6)))
	if err != nil {
		w.refused(r, "reading the address of connect()", err)
		return
	}
	addr := parseSockaddr(raw)
	if !addr.IsValid() || !w.valid(r.id) {
		return
	}
	if w.Match(addr) {
		w.log(r, "socket %d: %v is within the rules", int32(r.args[0]), addr)
		return
	}
	fd, err := w.socketOf(r)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	w.keepTCP(r, fd, addr)
}

// listen answers listen(), by the address that the socket is bound to.
func (w *worker) listen(r request) {
	defer w.proceed(r.id)
	fd, err := w.socketOf(r)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return
	}
	var addr netip.AddrPort
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		addr = netip.AddrPortFrom(netip.AddrFrom4(sa.Addr), uint16(sa.Port))
	case *unix.SockaddrInet6:
		addr = netip.AddrPortFrom(netip.AddrFrom16(sa.Addr).Unmap(), uint16(sa.Port))
	default:
		return
	}
	if w.Match(addr) {
		w.log(r, "socket %d: listening at %v is within the rules", int32(r.args[0]), addr)
		return
	}
	w.keepTCP(r, fd, addr)
}

// socketOf returns the socket that is the first argument of a call.
func (w *worker) socketOf(r request) (int, error) {
	fd, err := fileOf(r.pid, int(int32(r.args[0])))
	if err == unix.EBADF {
		return -1, err // the kernel returns the same error to the program
	}
	if err != nil {
		w.refused(r, "applying rules to sockets", err)
		return -1, err
	}
	if !w.valid(r.id) {
		unix.Close(fd)
		return -1, unix.ENOENT
	}
	return fd, nil
}

// keepTCP makes an AF_SMC socket fall back to TCP before it is connected. It does not test for AF_SMC sockets, because they may
// report that they are TCP sockets. TCP sockets do not change.
func (w *worker) keepTCP(r request, fd int, addr netip.AddrPort) {
	if typ, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || typ != unix.SOCK_STREAM {
		return
	}
	if err := fallBack(fd); err != nil {
		w.log(r, "socket %d: %v is outside of the rules, but %v", int32(r.args[0]), addr, err)
		return
	}
	w.log(r, "socket %d: %v is outside of the rules: TCP", int32(r.args[0]), addr)
}

// fallBack sets a socket option that makes every SMC module fall back to TCP. It keeps the value of the option.
func fallBack(fd int) error {
	value, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE)
	if err == nil {
		err = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN_NO_COOKIE, value)
	}
	return os.NewSyscallError("TCP_FASTOPEN_NO_COOKIE", err)
}

// parseSockaddr returns the address in a struct sockaddr of AF_INET or AF_INET6, and an invalid one for other families.
func parseSockaddr(raw []byte) netip.AddrPort {
	if len(raw) < unix.SizeofSockaddrInet4 {
		return netip.AddrPort{}
	}
	port := binary.BigEndian.Uint16(raw[2:])
	switch binary.NativeEndian.Uint16(raw) {
	case unix.AF_INET:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(raw[4:8])), port)
	case unix.AF_INET6:
		// The kernel accepts an address that ends before sin6_scope_id.
		if len(raw) >= 24 {
			return netip.AddrPortFrom(netip.AddrFrom16([16]byte(raw[8:24])).Unmap(), port)
		}
	}
	return netip.AddrPort{}
}
