// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"errors"
	"net/netip"
	"time"
)

// Program is a program for Exec.
type Program struct {
	Path      string
	Argv, Env []string
	// Exec calls Prepare, unless it is nil, immediately before it executes the program.
	Prepare func()
}

// Calls selects the system calls that the filter sends to the supervisor.
type Calls int

const (
	// Sockets is socket() alone.
	Sockets Calls = iota
	// Addresses is socket(), connect() and listen(): rules (Options.Match) need all three.
	Addresses
)

// Options configure how a supervisor answers.
type Options struct {
	// Match reports whether a connection to this address, or a listener at it, should use SMC. A nil Match matches every
	// address. The address of a listener may be unspecified, and its port may be 0.
	Match func(netip.AddrPort) bool
	// Receive and Send are the sizes of the socket's buffers in bytes; 0 keeps the system's default.
	Receive, Send int
	// Require makes socket() fail where AF_SMC is not available, instead of giving the program a TCP socket.
	Require bool
	// Prefix begins each line that the supervisor prints. It prints to the standard error of the program that the line is
	// about, provided that this is the file that the first program was started with.
	Prefix string
	// Quiet suppresses the warnings for the user, each of which is printed once. Debug adds a line for each socket.
	Quiet, Debug bool
	// Absent returns for the warning why AF_SMC is not available, and what to do. nil leaves that out.
	Absent func() string

	// socket makes an AF_SMC socket for a program that has asked for this domain and type. Tests replace it.
	socket func(domain, typ int) (int, error)
	// add installs a file in the program that waits for the answer to a call, and answers the call with the number of the new
	// descriptor. Tests replace it.
	add func(id uint64, file int, flags uint32) error
	// timeout limits how long a call waits for an inspector; 0 means inspectTimeout.
	timeout time.Duration
}

// ErrSupervised means that this process already has a supervisor, ours or that of a container: the kernel allows only one. The
// error of Exec wraps it.
var ErrSupervised = errors.New("system calls of this process are supervised already")

// UnavailableError is the error of Exec where programs cannot be supervised. Exec has not installed a filter then, so the
// caller can execute the program without a supervisor.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return e.Err.Error() }
func (e *UnavailableError) Unwrap() error { return e.Err }

// ExecError is the error of Exec if the program itself cannot be executed.
type ExecError struct {
	Path string
	Err  error // of execve(2)
}

func (e *ExecError) Error() string { return "exec " + e.Path + ": " + e.Err.Error() }
func (e *ExecError) Unwrap() error { return e.Err }
