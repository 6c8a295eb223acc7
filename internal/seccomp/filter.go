// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, the input of a filter.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// typeFlags are the flags that socket() accepts in its type argument. The kernel refuses others.
const typeFlags = unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK

// filter returns the program that the kernel runs for system calls. Verdicts that do not depend on arguments are reached by
// comparing the ABI and the number for equality only: this is how the kernel finds out which calls always pass.
func filter(calls Calls, abis []abi, bigEndian bool) ([]bpf.RawInstruction, error) {
	a := assembler{bigEndian: bigEndian, places: map[label]int{}}
	for i := range abis {
		a.abi(&abis[i], calls, label{i, "end"}, i)
	}
	a.end("allow", allow, len(abis))
	return bpf.Assemble(a.resolve())
}

// Verdicts of the filter on a call.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	notify = unix.SECCOMP_RET_USER_NOTIF
)

// abi appends the instructions for the calls of one ABI. Calls of other ABIs continue at the label end.
func (a *assembler) abi(abi *abi, calls Calls, end label, n int) {
	at := func(name string) label { return label{n, name} }
	a.load(offsetArch)
	a.jump(abi.arch, next, end)
	a.load(offsetNumber)
	if abi.ignored != 0 {
		a.add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^abi.ignored})
	}
	a.jump(abi.socket, at("socket"), next)
	if calls == Addresses {
		a.jump(abi.connect, at("notify"), next)
		a.jump(abi.listen, at("notify"), next)
	}
	if abi.socketcall != 0 {
		a.jump(abi.socketcall, at("socketcall"), next)
	}
	a.end("allow-number", allow, n)

	a.places[at("socket")] = len(a.code)
	a.loadArg(0)
	a.jump(unix.AF_INET, at("type"), next)
	a.jump(unix.AF_INET6, next, at("allow"))
	a.places[at("type")] = len(a.code)
	a.loadArg(1)
	a.add(bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: ^uint32(typeFlags)})
	a.jump(unix.SOCK_STREAM, next, at("allow"))
	a.loadArg(2)
	a.jump(0, at("notify"), next)
	a.jump(unix.IPPROTO_TCP, at("notify"), next)
	a.jump(unix.IPPROTO_MPTCP, at("notify"), at("allow"))

	if abi.socketcall != 0 {
		a.places[at("socketcall")] = len(a.code)
		a.loadArg(0)
		a.jump(socketcallSocket, at("notify"), next)
		if calls == Addresses {
			a.jump(socketcallConnect, at("notify"), next)
			a.jump(socketcallListen, at("notify"), next)
		}
	}
	a.end("allow", allow, n)
	a.end("notify", notify, n)
	a.places[end] = len(a.code)
}

// label names a place in the instructions for one ABI.
type label struct {
	abi  int
	name string
}

// next means the instruction after the jump.
var next = label{-1, ""}

// assembler builds a filter whose jumps go to labels.
type assembler struct {
	bigEndian bool
	code      []bpf.Instruction
	jumps     map[int][2]label
	places    map[label]int
}

func (a *assembler) add(i bpf.Instruction) { a.code = append(a.code, i) }

func (a *assembler) load(offset uint32) { a.add(bpf.LoadAbsolute{Off: offset, Size: 4}) }

// loadArg loads the low 32 bits of an argument: the kernel ignores the others for an int.
func (a *assembler) loadArg(n uint32) {
	offset := offsetArgs + 8*n
	if a.bigEndian {
		offset += 4
	}
	a.load(offset)
}

// jump appends a jump to the label equal if the loaded word has the value, and to the label other if not.
func (a *assembler) jump(value uint32, equal, other label) {
	if a.jumps == nil {
		a.jumps = map[int][2]label{}
	}
	a.jumps[len(a.code)] = [2]label{equal, other}
	a.add(bpf.JumpIf{Cond: bpf.JumpEqual, Val: value})
}

// end appends a verdict and defines a label for it.
func (a *assembler) end(name string, verdict uint32, n int) {
	a.places[label{n, name}] = len(a.code)
	a.add(bpf.RetConstant{Val: verdict})
}

// resolve replaces the labels of the jumps by distances, and returns the filter.
func (a *assembler) resolve() []bpf.Instruction {
	for i, to := range a.jumps {
		skip := func(l label) uint8 {
			if l == next {
				return 0
			}
			return uint8(a.places[l] - i - 1)
		}
		j := a.code[i].(bpf.JumpIf)
		j.SkipTrue, j.SkipFalse = skip(to[0]), skip(to[1])
		a.code[i] = j
	}
	return a.code
}
