// SPDX-License-Identifier: Apache-2.0

// Package smcerr has the errors that requests of all packages of this module can end with: pnet, netlinksmc, ism and
// smcstats. Each of these packages returns them, wrapped, under the name that it has here, so that one test with
// errors.Is serves for all.
//
// Errors that only one package knows are in that package.
package smcerr

import (
	"errors"
	"io/fs"
)

var (
	// ErrNoModule means that nothing in the kernel serves the request: the SMC module, or for sockets the smc_diag
	// module, is not loaded or does not exist for this kernel. It is also os.ErrNotExist.
	ErrNoModule error = kind{"SMC module not available", fs.ErrNotExist}

	// ErrNotSupported means that the SMC module, the device or this operating system does not know the request. It is
	// also errors.ErrUnsupported.
	ErrNotSupported error = kind{"not supported", errors.ErrUnsupported}

	// ErrPermission means that the caller may not do this: most changes take CAP_NET_ADMIN in the initial user namespace.
	// It is also os.ErrPermission.
	ErrPermission error = kind{"permission denied", fs.ErrPermission}

	// ErrDumpInterrupted means that what was listed changed while it was read.
	ErrDumpInterrupted error = kind{"changed while it was read", nil}

	// ErrMalformed means that the kernel's answer could not be decoded.
	ErrMalformed error = kind{"malformed answer", nil}
)

// kind is an error that may also be one of the standard library's.
type kind struct {
	text string
	also error
}

// Error returns what went wrong, without what was tried.
func (k kind) Error() string { return k.text }

// Unwrap returns the error of the standard library that this one also is, nil if there is none.
func (k kind) Unwrap() error { return k.also }
