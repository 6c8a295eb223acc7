// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"errors"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Causes of errors, for errors.Is. Those of package smcerr are the same in all packages.
var (
	// ErrNotSupported means that the device has no power switch, or that this operating system has no RDMA netlink family.
	ErrNotSupported = smcerr.ErrNotSupported

	// ErrPermission means that the caller may not do this. Such an error is also os.ErrPermission.
	ErrPermission = smcerr.ErrPermission

	// ErrDumpInterrupted means that the list of RDMA devices or ports changed while it was read, in each of several attempts.
	ErrDumpInterrupted = smcerr.ErrDumpInterrupted

	// ErrMalformed means that the kernel's answer could not be decoded.
	ErrMalformed = smcerr.ErrMalformed

	// ErrUnchanged means that the kernel accepted a request of SetPower, but the state of the slot did not change.
	ErrUnchanged = errors.New("the slot has not changed its state")
)
