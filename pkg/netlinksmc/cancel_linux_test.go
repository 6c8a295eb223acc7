// SPDX-License-Identifier: Apache-2.0

package netlinksmc

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
	"github.com/smckit/smckit/pkg/internal/nlconn"
)

// waiting returns a Client whose requests wait until the Kernel answers.
func waiting(t *testing.T) (*Client, *fakekernel.Kernel) {
	t.Helper()
	s, k := fakekernel.New(t)
	fakekernel.Serve(t, func() { k.SendFamily(k.Request(), testFamily) })
	c, err := NewFromConn(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)))
	if err != nil {
		t.Fatal(err)
	}
	return c, k
}

// TestCancelled ends the context of each request while the request waits for its answer.
func TestCancelled(t *testing.T) {
	for _, m := range methods {
		t.Run(m.name, func(t *testing.T) {
			c, k := waiting(t)
			k.CheckCancelled(func(ctx context.Context) error { return m.call(ctx, c) })
		})
	}
}

// TestOwnCancelled ends the context of requests of the family smckit while they wait, first with the look-up of the family.
func TestOwnCancelled(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Client) error{
		"DeleteLinkGroupR": func(ctx context.Context, c *Client) error { return c.DeleteLinkGroupR(ctx, 1) },
		"DeleteLinkGroupD": func(ctx context.Context, c *Client) error { return c.DeleteLinkGroupD(ctx, 1) },
		"DeleteLink":       func(ctx context.Context, c *Client) error { return c.DeleteLink(ctx, 1, 1) },
	} {
		c, k := waiting(t)
		ctx, cancel := context.WithCancel(t.Context())
		fakekernel.Serve(t, func() {
			k.Request()
			cancel()
		})
		if err := call(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, looking the family up: %v", name, err)
		}
		c, k = waiting(t)
		ctx, cancel = context.WithCancel(t.Context())
		fakekernel.Serve(t, func() {
			k.SendFamily(k.Request(), ownID)
			k.Request()
			cancel()
		})
		if err := call(ctx, c); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, requesting: %v", name, err)
		}
	}
}

// TestNewCancelled ends the context while New waits for the look-up of the family.
func TestNewCancelled(t *testing.T) {
	s, k := fakekernel.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	fakekernel.Serve(t, func() {
		k.Request()
		cancel()
	})
	conn := nlconn.NewGeneric(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)), nil)
	if _, err := newClient(ctx, conn); !errors.Is(err, context.Canceled) || errors.Is(err, ErrMalformed) {
		t.Errorf("error %v", err)
	}
	if _, err := conn.LookUp(t.Context(), familyName); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the connection is open: %v", err)
	}
}
