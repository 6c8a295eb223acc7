// SPDX-License-Identifier: Apache-2.0

package smcerr_test

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/smckit/smckit/pkg/ism"
	"github.com/smckit/smckit/pkg/netlinksmc"
	"github.com/smckit/smckit/pkg/pnet"
	"github.com/smckit/smckit/pkg/smcerr"
)

// TestShared checks that an error of each package is the shared one, that it is what the standard library has for it, and that it is
// no other of the shared ones.
func TestShared(t *testing.T) {
	shared := []error{
		smcerr.ErrNoModule, smcerr.ErrNotSupported, smcerr.ErrPermission, smcerr.ErrDumpInterrupted, smcerr.ErrMalformed,
	}
	for _, c := range []struct {
		name     string
		err      error
		is, also error
	}{
		{"pnet, no module", &pnet.Error{Kind: pnet.ErrNoModule}, smcerr.ErrNoModule, os.ErrNotExist},
		{"pnet, not supported", &pnet.Error{Kind: pnet.ErrNotSupported}, smcerr.ErrNotSupported, errors.ErrUnsupported},
		{"pnet, permission", &pnet.Error{Kind: pnet.ErrPermission, Err: syscall.EPERM}, smcerr.ErrPermission, os.ErrPermission},
		{"pnet, interrupted", &pnet.Error{Kind: pnet.ErrDumpInterrupted}, smcerr.ErrDumpInterrupted, nil},
		{"pnet, malformed", &pnet.Error{Kind: pnet.ErrMalformed, Err: errors.New("x")}, smcerr.ErrMalformed, nil},
		{"netlinksmc, no module", &netlinksmc.Error{Kind: netlinksmc.ErrNoModule}, smcerr.ErrNoModule, os.ErrNotExist},
		{"netlinksmc, not supported", &netlinksmc.Error{Kind: netlinksmc.ErrNotSupported}, smcerr.ErrNotSupported, errors.ErrUnsupported},
		{"netlinksmc, permission", &netlinksmc.Error{Kind: netlinksmc.ErrPermission}, smcerr.ErrPermission, os.ErrPermission},
		{"netlinksmc, interrupted", &netlinksmc.Error{Kind: netlinksmc.ErrDumpInterrupted}, smcerr.ErrDumpInterrupted, nil},
		{"netlinksmc, malformed", &netlinksmc.Error{Kind: netlinksmc.ErrMalformed, Err: errors.New("x")}, smcerr.ErrMalformed, nil},
		{"ism, not supported", fmt.Errorf("x: %w", ism.ErrNotSupported), smcerr.ErrNotSupported, errors.ErrUnsupported},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, err := range shared {
				if errors.Is(c.err, err) != (err == c.is) {
					t.Errorf("errors.Is(%q, %q) is %v", c.err, err, err != c.is)
				}
			}
			if c.also != nil && !errors.Is(c.err, c.also) {
				t.Errorf("%q is not %q", c.err, c.also)
			}
		})
	}
}

func Example() {
	// Whichever package has asked the kernel, this is what it says without the SMC module.
	_, err := netlinksmc.New()
	if errors.Is(err, smcerr.ErrNoModule) {
		fmt.Println("load the module first")
	}
}
