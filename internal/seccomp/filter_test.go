// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// interpreter runs a filter like the kernel, except for the byte order: it reads packets, in network byte order.
type interpreter struct {
	vm  *bpf.VM
	big bool
}

func newInterpreter(t *testing.T, goarch string, calls Calls) interpreter {
	t.Helper()
	big := goarch == "s390x"
	raw, err := filter(calls, abis[goarch], big)
	if err != nil {
		t.Fatal(err)
	}
	code, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatalf("not all is known of %v", raw)
	}
	vm, err := bpf.NewVM(code)
	if err != nil {
		t.Fatal(err)
	}
	return interpreter{vm, big}
}

// asks reports whether the filter sends a system call to the supervisor.
func (i interpreter) asks(t *testing.T, arch, nr uint32, args ...uint64) bool {
	t.Helper()
	data := binary.BigEndian.AppendUint32(nil, nr)
	data = binary.BigEndian.AppendUint32(data, arch)
	data = binary.BigEndian.AppendUint64(data, 0x12345678) // the instruction pointer
	args = append(args, make([]uint64, 6-len(args))...)
	for _, a := range args {
		words := []uint32{uint32(a), uint32(a >> 32)}
		if i.big {
			words[0], words[1] = words[1], words[0]
		}
		for _, w := range words {
			data = binary.BigEndian.AppendUint32(data, w)
		}
	}
	verdict, err := i.vm.Run(data)
	switch {
	case err != nil:
		t.Fatal(err)
	case verdict == unix.SECCOMP_RET_USER_NOTIF:
		return true
	case verdict != unix.SECCOMP_RET_ALLOW:
		t.Fatalf("verdict %#x", verdict)
	}
	return false
}

// TestFilterKnowsTCPFromOtherSockets tries each kind of argument that makes a socket TCP or not TCP.
func TestFilterKnowsTCPFromOtherSockets(t *testing.T) {
	const stream = unix.SOCK_STREAM
	cases := []struct {
		name               string
		domain, typ, proto uint64
		want               bool
	}{
		{"IPv4", unix.AF_INET, stream, 0, true},
		{"IPv6", unix.AF_INET6, stream, 0, true},
		{"TCP by name", unix.AF_INET, stream, unix.IPPROTO_TCP, true},
		{"with flags", unix.AF_INET6, stream | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, unix.IPPROTO_TCP, true},
		{"with one flag", unix.AF_INET, stream | unix.SOCK_NONBLOCK, 0, true},
		{"with what the upper half of a register has left", 0xffffffff_00000000 | unix.AF_INET, 1<<32 | stream, 7 << 32, true},
		{"with a flag that does not exist", unix.AF_INET, stream | 0x10, 0, false},
		{"with a type like a stream's", unix.AF_INET, unix.SOCK_SEQPACKET, 0, false},
		{"datagrams", unix.AF_INET, unix.SOCK_DGRAM, 0, false},
		{"datagrams of IPv6", unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0, false},
		{"raw", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP, false},
		{"SCTP", unix.AF_INET, stream, unix.IPPROTO_SCTP, false},
		{"MPTCP", unix.AF_INET6, stream, unix.IPPROTO_MPTCP, true},
		{"Unix", unix.AF_UNIX, stream, 0, false},
		{"SMC already", unix.AF_SMC, stream, 0, false},
		{"netlink", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE, false},
		{"vsock", unix.AF_VSOCK, stream, 0, false},
	}
	for goarch, all := range abis {
		for _, calls := range []Calls{Sockets, Addresses} {
			vm := newInterpreter(t, goarch, calls)
			for _, abi := range all {
				for _, c := range cases {
					if got := vm.asks(t, abi.arch, abi.socket, c.domain, c.typ, c.proto); got != c.want {
						t.Errorf("%s, ABI %#x, calls %d, %s: %t", goarch, abi.arch, calls, c.name, got)
					}
				}
			}
		}
	}
}

// TestFilterLetsOtherCallsPass tries all numbers with the arguments of socket() for TCP, connect() and socketcall().
func TestFilterLetsOtherCallsPass(t *testing.T) {
	for goarch, all := range abis {
		for _, calls := range []Calls{Sockets, Addresses} {
			vm := newInterpreter(t, goarch, calls)
			for _, abi := range all {
				want := []uint32{abi.socket}
				if calls == Addresses {
					want = append(want, abi.connect, abi.listen)
				}
				if abi.socketcall != 0 {
					want = append(want, abi.socketcall)
				}
				got := map[uint32]bool{}
				for nr := range uint32(1024) {
					// The second argument list is that of a socketcall() that makes a socket.
					if vm.asks(t, abi.arch, nr, unix.AF_INET, unix.SOCK_STREAM) || vm.asks(t, abi.arch, nr, socketcallSocket) {
						got[nr] = true
					}
				}
				if len(got) != len(want) {
					t.Errorf("%s, ABI %#x, calls %d: asks about %v, not about %v", goarch, abi.arch, calls, got, want)
				}
				for _, nr := range want {
					if !got[nr] {
						t.Errorf("%s, ABI %#x, calls %d: does not ask about %d", goarch, abi.arch, calls, nr)
					}
				}
			}
		}
	}
}

// TestFilterOfX86 tries the documented numbers for each mode of the processor, independently of the table.
func TestFilterOfX86(t *testing.T) {
	const (
		x8664 = unix.AUDIT_ARCH_X86_64
		i386  = 0x40000003
		x32   = 0x40000000
	)
	tcp := []uint64{unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_TCP}
	cases := []struct {
		name         string
		arch, nr     uint32
		args         []uint64
		plain, ruled bool
	}{
		{name: "socket of x86-64", arch: x8664, nr: unix.SYS_SOCKET, args: tcp, plain: true, ruled: true},
		{name: "socket of x32", arch: x8664, nr: x32 | unix.SYS_SOCKET, args: tcp, plain: true, ruled: true},
		{name: "socket of i386", arch: i386, nr: 359, args: tcp, plain: true, ruled: true},
		{name: "sched_setattr of i386 is not", arch: i386, nr: 351, args: tcp},
		{name: "call 41 of i386 is dup", arch: i386, nr: 41, args: tcp},
		{name: "call 359 of x86-64 is none", arch: x8664, nr: 359, args: tcp},
		{name: "connect of x86-64", arch: x8664, nr: unix.SYS_CONNECT, args: []uint64{3, 0x7fff0000, 16}, ruled: true},
		{name: "connect of x32", arch: x8664, nr: x32 | unix.SYS_CONNECT, args: []uint64{3, 0x7fff0000, 16}, ruled: true},
		{name: "connect of i386", arch: i386, nr: 362, args: []uint64{3, 0x7fff0000, 16}, ruled: true},
		{name: "listen of x86-64", arch: x8664, nr: unix.SYS_LISTEN, args: []uint64{3, 5}, ruled: true},
		{name: "listen of i386", arch: i386, nr: 363, args: []uint64{3, 5}, ruled: true},
		{name: "socketcall(SYS_SOCKET)", arch: i386, nr: 102, args: []uint64{1, 0xffff0000}, plain: true, ruled: true},
		{name: "socketcall(SYS_BIND)", arch: i386, nr: 102, args: []uint64{2, 0xffff0000}},
		{name: "socketcall(SYS_CONNECT)", arch: i386, nr: 102, args: []uint64{3, 0xffff0000}, ruled: true},
		{name: "socketcall(SYS_LISTEN)", arch: i386, nr: 102, args: []uint64{4, 0xffff0000}, ruled: true},
		{name: "socketcall(SYS_ACCEPT4)", arch: i386, nr: 102, args: []uint64{18, 0xffff0000}},
		{name: "an ABI that is not known", arch: 0xc00000b7, nr: 198, args: tcp},
		{name: "no call", arch: x8664, nr: 0xffffffff, args: tcp},
	}
	plain, ruled := newInterpreter(t, "amd64", Sockets), newInterpreter(t, "amd64", Addresses)
	for _, c := range cases {
		if got := plain.asks(t, c.arch, c.nr, c.args...); got != c.plain {
			t.Errorf("%s: %t", c.name, got)
		}
		if got := ruled.asks(t, c.arch, c.nr, c.args...); got != c.ruled {
			t.Errorf("%s, with rules: %t", c.name, got)
		}
	}
}

// TestNumbersAreDecodedAsTheFilterHasThem checks that the supervisor recognises exactly the calls that the filter sends.
func TestNumbersAreDecodedAsTheFilterHasThem(t *testing.T) {
	for goarch, all := range abis {
		vm := newInterpreter(t, goarch, Addresses)
		for _, abi := range all {
			for nr := range uint32(1024) {
				kind, inMemory := abi.callByNumber(nr)
				asked := vm.asks(t, abi.arch, nr, unix.AF_INET, unix.SOCK_STREAM) || vm.asks(t, abi.arch, nr, socketcallListen)
				if known := kind != callNone || inMemory; known != asked {
					t.Errorf("%s, ABI %#x, number %d: known %t, asked about %t", goarch, abi.arch, nr, known, asked)
				}
			}
		}
	}
	for nr, want := range map[uint64]call{0: callNone, 1: callSocket, 2: callNone, 3: callConnect, 4: callListen, 5: callNone} {
		if got, _ := indirect(nr); got != want {
			t.Errorf("socketcall %d is %d", nr, got)
		}
	}
}

// TestFilterIsDecidedByNumber repeats what the kernel does when it installs the filter: it runs the filter for each number with
// unknown arguments. If the filter reaches a verdict without the arguments, later calls pass without it.
func TestFilterIsDecidedByNumber(t *testing.T) {
	for goarch, all := range abis {
		raw, err := filter(Addresses, all, goarch == "s390x")
		if err != nil {
			t.Fatal(err)
		}
		code, _ := bpf.Disassemble(raw)
		for _, abi := range all {
			known := 0
			for nr := range uint32(512) {
				if passes(t, code, abi.arch, nr) {
					known++
				}
			}
			asked := 3
			if abi.socketcall != 0 {
				asked++
			}
			if known != 512-asked {
				t.Errorf("%s, ABI %#x: %d calls pass without the filter, not %d", goarch, abi.arch, known, 512-asked)
			}
		}
	}
}

// passes runs a filter like seccomp_is_const_allow() in the kernel, which knows these instructions only.
func passes(t *testing.T, code []bpf.Instruction, arch, nr uint32) bool {
	t.Helper()
	var a uint32
	for pc := 0; pc < len(code); pc++ {
		switch i := code[pc].(type) {
		case bpf.LoadAbsolute:
			switch i.Off {
			case offsetNumber:
				a = nr
			case offsetArch:
				a = arch
			default:
				return false
			}
		case bpf.ALUOpConstant:
			if i.Op != bpf.ALUOpAnd {
				return false
			}
			a &= i.Val
		case bpf.JumpIf:
			skip := i.SkipFalse
			switch i.Cond {
			case bpf.JumpEqual:
				if a == i.Val {
					skip = i.SkipTrue
				}
			case bpf.JumpNotEqual:
				if a != i.Val {
					skip = i.SkipTrue
				}
			default:
				return false
			}
			pc += int(skip)
		case bpf.RetConstant:
			return i.Val == unix.SECCOMP_RET_ALLOW
		default:
			t.Fatalf("instruction %T", i)
		}
	}
	return false
}
