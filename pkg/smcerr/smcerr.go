// SPDX-License-Identifier: Apache-2.0

// Package smcerr has the errors that the other packages of this module share: pnet, netlinksmc, ism, smcstats and policy. All of them
// return these errors, wrapped, so that one test with errors.Is works for all packages:
//
//	if errors.Is(err, smcerr.ErrNoModule) { ... }
//
// A request that failed is an *Error, whose fields are the operation, its object, the kind, the remedy and the cause.
//
// pnet, netlinksmc and ism have those that they return under their own names too. An error that only one package returns is in
// that package, such as pnet.ErrRefused or netlinksmc.ErrUEIDExists. A request
// whose context ends returns an error that is context.Canceled or context.DeadlineExceeded; a request on a closed
// connection returns one that is os.ErrClosed. Neither is an error of this package.
package smcerr

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

var (
	// ErrNoModule means that nothing in the kernel serves the request: the module smc, or smc_diag for a listing of
	// sockets, is not loaded or does not exist for this kernel. ErrNoModule is also os.ErrNotExist.
	ErrNoModule error = kind{"SMC module not available", fs.ErrNotExist}

	// ErrNotSupported means that the SMC module, the device or this operating system does not know the request.
	// ErrNotSupported is also errors.ErrUnsupported.
	ErrNotSupported error = kind{"not supported", errors.ErrUnsupported}

	// ErrPermission means that the caller may not do this. Most changes need CAP_NET_ADMIN in the initial user namespace.
	// ErrPermission is also os.ErrPermission.
	ErrPermission error = kind{"permission denied", fs.ErrPermission}

	// ErrDumpInterrupted means that a list changed while it was read.
	ErrDumpInterrupted error = kind{"changed while it was read", nil}

	// ErrChanged means that another program changed the PNET table or the policy meanwhile: read it again. pnet and policy have
	// errors of this kind, with texts of their own.
	ErrChanged error = kind{"changed by another program meanwhile", nil}

	// ErrMalformed means that an answer of the kernel, or a stored file, could not be decoded.
	ErrMalformed error = kind{"malformed answer", nil}
)

// kind is an error that may also be one of the standard library's.
type kind struct {
	text string
	also error
}

// Error returns the cause without the operation.
func (k kind) Error() string { return k.text }

// Unwrap returns the error of the standard library that this one also is, nil if there is none.
func (k kind) Unwrap() error { return k.also }

// Kind returns the error of this package that err is, or that its errno means: ErrPermission for EPERM and EACCES,
// ErrNotSupported for EOPNOTSUPP, EPROTONOSUPPORT and EAFNOSUPPORT. It returns nil for any other error: in particular
// ENOENT is ErrNoModule only as the answer of a netlink family.
func Kind(err error) error {
	for _, k := range []error{ErrNoModule, ErrNotSupported, ErrPermission, ErrDumpInterrupted, ErrMalformed} {
		if errors.Is(err, k) {
			return k
		}
	}
	errno, _ := errors.AsType[syscall.Errno](err)
	switch errno {
	case syscall.EPERM, syscall.EACCES:
		return ErrPermission
	case syscall.EOPNOTSUPP, syscall.EPROTONOSUPPORT, syscall.EAFNOSUPPORT:
		return ErrNotSupported
	}
	return nil
}

// With returns an error with the text of err that is both err and kind for errors.Is and errors.As. It returns err if kind
// is nil, and nil if err is nil.
func With(err, kind error) error {
	if err == nil || kind == nil {
		return err
	}
	return &both{err, kind}
}

// both is an error of two kinds with the text of the first one.
type both struct{ err, kind error }

func (b *both) Error() string { return b.err.Error() }

func (b *both) Unwrap() []error { return []error{b.err, b.kind} }

// maxQuoted is how much of a word Quote repeats, in bytes.
const maxQuoted = 64

// Quote returns a word of the user for the text of an error: in quotation marks, printable and not too long.
func Quote(s string) string {
	if len(s) > maxQuoted {
		return fmt.Sprintf("%q...", s[:maxQuoted])
	}
	return fmt.Sprintf("%q", s)
}
