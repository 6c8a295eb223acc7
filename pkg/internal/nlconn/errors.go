// SPDX-License-Identifier: Apache-2.0

package nlconn

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/mdlayher/netlink"
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

// Cause returns the text of an error without the prefix of the netlink library.
func Cause(err error) string {
	op, ok := errors.AsType[*netlink.OpError](err)
	switch {
	case !ok:
		return err.Error()
	case op.Message != "":
		return op.Err.Error() + ": " + op.Message
	}
	return op.Err.Error()
}

// KernelMessage returns the text of the extended acknowledgement in err, "" if there is none.
func KernelMessage(err error) string {
	if op, ok := errors.AsType[*netlink.OpError](err); ok {
		return op.Message
	}
	return ""
}
