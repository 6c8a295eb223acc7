// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"testing"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
)

// TestCancelled ends the context of each request while the request waits for its answer.
func TestCancelled(t *testing.T) {
	for name, call := range map[string]func(context.Context, *Client) error{
		"Get":           func(ctx context.Context, c *Client) error { _, err := c.Get(ctx); return err },
		"SetRules":      func(ctx context.Context, c *Client) error { return c.SetRules(ctx, 1, nil) },
		"Services":      func(ctx context.Context, c *Client) error { _, err := c.Services(ctx); return err },
		"FlushServices": func(ctx context.Context, c *Client) error { return c.FlushServices(ctx) },
		"Enable":        func(ctx context.Context, c *Client) error { return c.Enable(ctx, 1, true) },
		"Peers":         func(ctx context.Context, c *Client) error { _, err := c.Peers(ctx); return err },
		"ForgetPeers":   func(ctx context.Context, c *Client) error { return c.ForgetPeers(ctx) },
		"Memory":        func(ctx context.Context, c *Client) error { _, err := c.Memory(ctx); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s, k := fakekernel.New(t)
			fakekernel.Serve(t, func() { k.SendFamily(k.Request(), familyID) })
			c, err := NewFromConn(genetlink.NewConn(netlink.NewConn(s, fakekernel.PortID)))
			if err != nil {
				t.Fatal(err)
			}
			k.CheckCancelled(func(ctx context.Context) error { return call(ctx, c) })
		})
	}
}
