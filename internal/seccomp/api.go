// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"net/netip"
	"time"
)

// Program is what Exec executes.
type Program struct {
	Path      string
	Argv, Env []string
	// Prepare, if it is not nil, is called right before.
	Prepare func()
}

// Calls says which system calls the supervisor is asked about.
type Calls int

const (
	// Sockets is socket() alone.
	Sockets Calls = iota
	// Addresses is connect() and listen() as well, which rules need (Options.Match).
	Addresses
)

// Options are how a supervisor answers.
type Options struct {
	// Match says whether a connection to this address, or a listener at it, is to be SMC. Nil is every one. A listener's
	// address may be unspecified, its port 0.
	Match func(netip.AddrPort) bool
	// Receive and Send are sizes of buffers in bytes, 0 for the system's.
	Receive, Send int
	// Require refuses a socket where the program would get plain TCP for want of AF_SMC.
	Require bool
	// Prefix begins each line that is printed: to the standard error of the program that the line is about, as long as that
	// is the file that the first program was started with.
	Prefix string
	// Quiet suppresses the lines about what the user should know, each of which is printed once. Debug adds a line for each
	// socket.
	Quiet, Debug bool

	// socket makes an AF_SMC socket for a program that has asked for this domain and type. Tests have another.
	socket func(domain, typ int) (int, error)
	// add puts a file into the program that waits for the answer to a call, and answers the call with its number. Tests have
	// another.
	add func(id uint64, file int, flags uint32) error
	// patience is how long a call waits for an inspector, inspectPatience if it is 0.
	patience time.Duration
}

// ErrSupervised is within the error of Exec where a supervisor, of ours or of a container, answers this process already: the
// kernel allows for one.
var ErrSupervised = errors.New("system calls of this process are supervised already")

// UnavailableError is the error of Exec where programs cannot be supervised. There is no filter then: the program can be executed
// without a supervisor.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// ExecError is the error of Exec where the program itself cannot be executed.
type ExecError struct {
	Path string
	Err  error // of execve(2)
}

func (e *ExecError) Error() string { return "exec " + e.Path + ": " + e.Err.Error() }
func (e *ExecError) Unwrap() error { return e.Err }
