// SPDX-License-Identifier: Apache-2.0

package pnet

import (
	"errors"
	"maps"
	"syscall"

	"github.com/smckit/smckit/pkg/internal/nlconn"
	"github.com/smckit/smckit/pkg/smcerr"
)

// Causes of errors, for errors.Is. Each is wrapped in an *smcerr.Error. Those of package smcerr are the same in all packages.
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
	// errNotLoaded has the text of smc-tools.
	errNotLoaded = smcerr.With(errors.New("SMC module not loaded"), ErrNoModule)
)

// requestError turns the failure of a request into an *smcerr.Error, and nil into nil. kinds has the meanings of an errno that
// are special to this request.
func requestError(op, object string, err error, kinds map[syscall.Errno]error) error {
	if err == nil {
		return nil
	}
	all := maps.Clone(errnoKinds)
	maps.Copy(all, kinds)
	e := nlconn.Error(op, object, err, all)
	if e.Kind == errNotLoaded {
		// Without the module, the operation does not matter.
		e.Op, e.Object, e.Remedy = "", "", "run 'modprobe smc', or use a kernel that has it"
	}
	return e
}

// errnoKinds has the meanings of an errno that are special to this package, for any request.
var errnoKinds = map[syscall.Errno]error{
	syscall.ENOENT: errNotLoaded,
	syscall.EEXIST: ErrRefused,
	syscall.EINVAL: errInvalid,
	syscall.ERANGE: errRange,
}
