// SPDX-License-Identifier: Apache-2.0

package seccomp

// call is a system call that the filter may have stopped.
type call int

const (
	callNone call = iota
	callSocket
	callConnect
	callListen
)

// abi is one of the ways in which programs call a kernel. The number of a call that does not exist in it is 0.
type abi struct {
	arch                    uint32 // as audit(7) and seccomp(2) number it
	socket, connect, listen uint32
	// The first argument of socketcall() is the number of a call, the second is the address of that call's arguments: an array
	// of words, each of this size in bytes.
	socketcall uint32
	word       int
	// ignored is a mask of bits of a number that do not select the call.
	ignored uint32
}

// Numbers of the calls in the first argument of socketcall().
const (
	socketcallSocket  = 1
	socketcallConnect = 3
	socketcallListen  = 4
)

// abis lists the ABIs of each kernel that our programs are built for, by GOARCH, with the most frequent ABI first.
var abis = map[string][]abi{
	"amd64": {
		// x32 uses the numbers of x86-64 with one more bit set.
		{arch: 0xc000003e, socket: 41, connect: 42, listen: 50, ignored: 0x40000000},
		{arch: 0x40000003, socket: 359, connect: 362, listen: 363, socketcall: 102, word: 4},
	},
	"arm64": {
		{arch: 0xc00000b7, socket: 198, connect: 203, listen: 201},
		{arch: 0x40000028, socket: 281, connect: 283, listen: 284},
	},
	"ppc64le": {
		{arch: 0xc0000015, socket: 326, connect: 328, listen: 329, socketcall: 102, word: 8},
	},
	"s390x": {
		{arch: 0x80000016, socket: 359, connect: 362, listen: 363, socketcall: 102, word: 8},
	},
}

// callByNumber returns the call that has a number. For socketcall(), it returns callNone and true.
func (a abi) callByNumber(nr uint32) (c call, indirect bool) {
	switch nr &^ a.ignored {
	case 0:
		return callNone, false
	case a.socket:
		return callSocket, false
	case a.connect:
		return callConnect, false
	case a.listen:
		return callListen, false
	case a.socketcall:
		return callNone, true
	}
	return callNone, false
}

// indirect returns the call that socketcall() makes for this first argument, and the number of its arguments.
func indirect(nr uint64) (c call, args int) {
	switch uint32(nr) {
	case socketcallSocket:
		return callSocket, 3
	case socketcallConnect:
		return callConnect, 3
	case socketcallListen:
		return callListen, 2
	}
	return callNone, 0
}
