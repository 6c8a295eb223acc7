// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/smckit/smckit/pkg/smcerr"
)

// Kind returns the error of package smcerr that the failure of a request is, nil if it is none of them. A failure without
// an errno is an answer that could not be decoded, unless the context or the connection has ended.
func Kind(err error) error {
	if kind := smcerr.Kind(err); kind != nil {
		return kind
	}
	if _, ok := errors.AsType[syscall.Errno](err); ok {
		return nil
	}
	for _, end := range []error{context.Canceled, context.DeadlineExceeded, os.ErrClosed} {
		if errors.Is(err, end) {
			return nil
		}
	}
	return smcerr.ErrMalformed
}

// remedies has the usual remedies. Some requests have others.
var remedies = map[error]string{
	smcerr.ErrNoModule:        "load it with 'modprobe smc', or use a kernel that has it",
	smcerr.ErrPermission:      "run as root, that is with CAP_NET_ADMIN in the initial user namespace",
	smcerr.ErrDumpInterrupted: "try again",
}

// Error returns the failure of a request, with its kind and the usual remedy. err is not nil. kinds has the meanings of an
// errno that are special to the request.
func Error(op, object string, err error, kinds map[syscall.Errno]error) *smcerr.Error {
	errno, _ := errors.AsType[syscall.Errno](err)
	kind := kinds[errno]
	if kind == nil {
		kind = Kind(err)
	}
	return &smcerr.Error{Op: op, Object: object, Kind: kind, Remedy: remedies[kind], Err: err}
}
