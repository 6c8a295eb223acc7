// SPDX-License-Identifier: Apache-2.0

package pnet_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
	"github.com/smckit/smckit/pkg/pnet"
)

// waiting returns a Client whose requests wait until the Kernel answers.
func waiting(t *testing.T) (*pnet.Client, *fakekernel.Kernel) {
	t.Helper()
	s, k := fakekernel.New(t)
	fakekernel.Serve(t, func() { k.SendFamily(k.Request(), 0x21) })
	c, err := pnet.NewFromConn(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)))
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// TestClientCancelled ends the context of each request while the request waits for its answer.
func TestClientCancelled(t *testing.T) {
	for name, do := range methods {
		t.Run(name, func(t *testing.T) {
			c, k := waiting(t)
			k.CheckCancelled(func(ctx context.Context) error { return do(ctx, c) })
		})
	}
}

// TestClientClosed closes the Client while a request waits for its answer.
func TestClientClosed(t *testing.T) {
	for name, do := range methods {
		t.Run(name, func(t *testing.T) {
			c, k := waiting(t)
			fakekernel.Serve(t, func() {
				k.Request()
				_ = c.Close()
			})
			if err := do(t.Context(), c); !errors.Is(err, os.ErrClosed) || errors.Is(err, pnet.ErrMalformed) {
				t.Errorf("error %v", err)
			}
		})
	}
}
