// SPDX-License-Identifier: Apache-2.0

package smcerr_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/smcerr"
)

// TestErrorText has each field of an Error that may be missing, and answers of the kernel with and without a message.
func TestErrorText(t *testing.T) {
	answer := func(errno error, message string) error {
		return &netlink.OpError{Op: "receive", Err: errno, Message: message}
	}
	changed := smcerr.With(errors.New("the policy has been changed meanwhile"), smcerr.ErrChanged)
	for want, e := range map[string]smcerr.Error{
		"list links: failed":                        {Op: "list links"},
		"list links: cannot allocate memory":        {Op: "list links", Err: answer(syscall.ENOMEM, "")},
		"list links: device or resource busy: held": {Op: "list links", Err: answer(syscall.EBUSY, "held")},
		"list links: malformed answer":              {Op: "list links", Kind: smcerr.ErrMalformed},
		"list links: malformed answer: short":       {Op: "list links", Kind: smcerr.ErrMalformed, Err: answer(errors.New("short"), "")},
		"list links: permission denied: run as root": {
			Op: "list links", Kind: smcerr.ErrPermission, Remedy: "run as root", Err: answer(syscall.EPERM, ""),
		},
		"list links: permission denied: run as root (kernel: locked down)": {
			Op: "list links", Kind: smcerr.ErrPermission, Remedy: "run as root", Err: answer(syscall.EPERM, "locked down"),
		},
		"delete link 02: not supported": {Op: "delete link", Object: "02", Kind: smcerr.ErrNotSupported},
		"the policy has been changed meanwhile: try again": {
			Kind: changed, Remedy: "try again", Err: answer(syscall.ESTALE, "the policy has been changed meanwhile"),
		},
	} {
		if got := e.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestErrorUnwrap finds the kind and the cause.
func TestErrorUnwrap(t *testing.T) {
	err := error(&smcerr.Error{Op: "list links", Kind: smcerr.ErrPermission, Err: syscall.EPERM})
	for _, is := range []error{smcerr.ErrPermission, os.ErrPermission, syscall.EPERM} {
		if !errors.Is(err, is) {
			t.Errorf("%v is not %v", err, is)
		}
	}
	if errors.Is(&smcerr.Error{Op: "list links"}, smcerr.ErrPermission) {
		t.Error("an error without a kind has one")
	}
}
