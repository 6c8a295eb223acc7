// SPDX-License-Identifier: Apache-2.0

package smcerr

import (
	"errors"
	"slices"

	"github.com/mdlayher/netlink"
)

// Error is an operation that failed. Its text is one line:
//
//	operation object: kind or cause: remedy (kernel: message)
//
// errors.Is and errors.As find Kind and Err in it. For an answer of the kernel, Err is a *netlink.OpError, which holds the
// errno and the text of the extended acknowledgement.
type Error struct {
	// Op is the operation, such as "add user EID". The text begins with the kind if it is empty.
	Op string
	// Object is what Op was about, as the text shows it, such as `"LAB.ONE"`; it may be empty.
	Object string
	// Kind is one of the errors of this package, or of the package that returned the Error; nil if none applies.
	Kind error
	// Remedy is the action to take; it may be empty.
	Remedy string
	// Err is the cause; it may be nil.
	Err error
}

// Error returns the text of the error.
func (e *Error) Error() string {
	s := e.what()
	if e.Op != "" {
		op := e.Op
		if e.Object != "" {
			op += " " + e.Object
		}
		s = op + ": " + s
	}
	if e.Remedy != "" {
		s += ": " + e.Remedy
	}
	// The texts of some kinds are those of the kernel's message.
	if msg := kernelMessage(e.Err); msg != "" && e.Kind != nil && !errors.Is(e.Kind, ErrChanged) && e.Kind != ErrMalformed {
		s += " (kernel: " + msg + ")"
	}
	return s
}

// what returns what was wrong. Only for ErrMalformed the cause says more than the kind.
func (e *Error) what() string {
	switch {
	case e.Kind == nil && e.Err == nil:
		return "failed"
	case e.Kind == nil:
		return cause(e.Err)
	case e.Kind == ErrMalformed && e.Err != nil:
		return e.Kind.Error() + ": " + cause(e.Err)
	}
	return e.Kind.Error()
}

// Unwrap returns the kind and the cause.
func (e *Error) Unwrap() []error {
	return slices.DeleteFunc([]error{e.Kind, e.Err}, func(err error) bool { return err == nil })
}

// cause returns the text of an error without the prefix of the netlink library.
func cause(err error) string {
	op, ok := errors.AsType[*netlink.OpError](err)
	switch {
	case !ok:
		return err.Error()
	case op.Message != "":
		return op.Err.Error() + ": " + op.Message
	}
	return op.Err.Error()
}

// kernelMessage returns the text of the extended acknowledgement in err, "" if there is none.
func kernelMessage(err error) string {
	if op, ok := errors.AsType[*netlink.OpError](err); ok {
		return op.Message
	}
	return ""
}
