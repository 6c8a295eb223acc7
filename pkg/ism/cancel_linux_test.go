// SPDX-License-Identifier: Apache-2.0

package ism

import (
	"context"
	"errors"
	"testing"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/pkg/internal/fakekernel"
	"github.com/smckit/smckit/pkg/internal/nlconn"
)

// TestRDMADevicesCancelled ends the context while the request for the devices waits, and while that for the ports does.
func TestRDMADevicesCancelled(t *testing.T) {
	s, k := fakekernel.New(t)
	conn := nlconn.New(netlink.NewConn(s, fakekernel.PortID), s.Interrupted)
	k.CheckCancelled(func(ctx context.Context) error {
		_, err := rdmaDevices(ctx, conn)
		return err
	})
	ctx, cancel := context.WithCancel(t.Context())
	fakekernel.Serve(t, func() {
		req := k.Request()
		end := fakekernel.Done(req)
		m := end
		m.Header.Type, m.Data = req.Header.Type, device(t, 1, "rxe0", 0)
		k.Send(m, end)
		k.Request()
		cancel()
	})
	if _, err := rdmaDevices(ctx, conn); !errors.Is(err, context.Canceled) {
		t.Errorf("ports: %v", err)
	}
}
