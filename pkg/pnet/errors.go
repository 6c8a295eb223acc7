// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"cmp"
	"errors"
	"slices"
	"syscall"

	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Causes of errors, for errors.Is. Each is wrapped in an *Error. Those of package smcerr are the same in all packages.
var (
	// ErrNoModule means that nothing serves the PNET table: the SMC module is not loaded, or does not exist for this
	// kernel. Such an error is also os.ErrNotExist.
	ErrNoModule = smcerr.ErrNoModule

	// ErrNotSupported means that the SMC module does not know the request.
	ErrNotSupported = smcerr.ErrNotSupported

	// ErrPermission means that the caller may not change the table. Such an error is also os.ErrPermission.
	ErrPermission = smcerr.ErrPermission

	// ErrNoID means that the table has no entry with the PNET ID to delete. It is not ErrNoModule.
	ErrNoID = errors.New("not in the table")

	// ErrRefused means that the kernel does not add an entry because the device has a PNET ID: by another entry, or from
	// its hardware. Outside the initial network namespace it is also the answer for every RDMA and ISM device. Such an
	// error is also os.ErrExist.
	ErrRefused = errors.New("the device has a PNET ID already, or cannot get one in this network namespace")

	// ErrDumpInterrupted means that the table changed while it was read, in each of several attempts.
	ErrDumpInterrupted = smcerr.ErrDumpInterrupted

	// ErrMalformed means that the kernel's answer could not be decoded.
	ErrMalformed = smcerr.ErrMalformed
)

var (
	errInvalid = errors.New("refused by the kernel as invalid")
	errRange   = errors.New("refused by the kernel as too long")
)

// Error is a request to the kernel that failed. Its text is one line with the operation, the cause and the remedy. It unwraps
// to one of the errors of this package, if one applies, and to the cause: for an answer of the kernel a *netlink.OpError, which
// holds the errno.
type Error struct {
	// Op is the operation, such as "adding NET1 eth eth0".
	Op string
	// Kind is one of the errors of this package, or nil.
	Kind error
	// Err is the cause; it may be nil.
	Err error
}

// Error returns the text of the error.
func (e *Error) Error() string {
	// Without the module, or without permission, the operation does not matter much.
	switch e.Kind {
	case ErrNoModule:
		return "SMC module not loaded: run 'modprobe smc', or use a kernel that has it"
	case ErrPermission:
		return e.Op + " is not permitted: run as root (CAP_NET_ADMIN in the initial user namespace)"
	}
	s := e.Op + ": "
	switch {
	case e.Kind == nil:
		return s + nlconn.Cause(e.Err)
	case e.Err == nil || e.Kind != ErrMalformed && nlconn.KernelMessage(e.Err) == "":
		return s + e.Kind.Error()
	default:
		return s + e.Kind.Error() + ": " + nlconn.Cause(e.Err)
	}
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}

// requestError turns the failure of a request into an *Error, and nil into nil. kinds has the meanings of an errno that are
// special to this request.
func requestError(op string, err error, kinds map[syscall.Errno]error) error {
	if err == nil {
		return nil
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	kind := cmp.Or(kinds[errno], errnoKinds[errno])
	if kind == nil {
		kind = nlconn.Kind(err)
	}
	return &Error{Op: op, Kind: kind, Err: err}
}

// errnoKinds has the meanings of an errno that are special to this package, for any request.
var errnoKinds = map[syscall.Errno]error{
	syscall.ENOENT: ErrNoModule,
	syscall.EEXIST: ErrRefused,
	syscall.EINVAL: errInvalid,
	syscall.ERANGE: errRange,
}
