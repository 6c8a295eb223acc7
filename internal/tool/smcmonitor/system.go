// SPDX-License-Identifier: Apache-2.0

//go:build linux

package smcmonitor

import (
	"context"
	"errors"
	"os"
	"os/signal"

	"github.com/mdlayher/netlink"
	"github.com/smckit/smckit/internal/smctrace"
	vnetlink "github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// startTrace enables the tracepoints in an instance of their own.
func startTrace() (*traceSource, error) {
	dir, err := smctrace.Open()
	if err != nil {
		return nil, err
	}
	i, err := dir.NewInstance(tracepoints...)
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	hangup, release := holdSignals()
	return &traceSource{
		events: i.Events,
		lines:  i.Read,
		hangup: hangup,
		close: func() error {
			defer release()
			return errors.Join(i.Remove(), dir.Close())
		},
	}, nil
}

// holdSignals keeps signals from ending the process before the trace instance is removed: timeout(1) sends two, and the second would. The
// channel gets SIGHUP, unless the process ignores it.
func holdSignals() (hangup <-chan os.Signal, release func()) {
	held, hup := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(held, unix.SIGINT, unix.SIGTERM)
	if !signal.Ignored(unix.SIGHUP) {
		signal.Notify(hup, unix.SIGHUP)
	}
	return hup, func() {
		signal.Stop(held)
		signal.Stop(hup)
	}
}

// cookie returns that of the network namespace of this thread.
func cookie() (uint64, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	return unix.GetsockoptUint64(fd, unix.SOL_SOCKET, unix.SO_NETNS_COOKIE)
}

// rdmaNotify is the multicast group of NETLINK_RDMA that reports changes of devices: RDMA_NL_GROUP_NOTIFY of Linux 6.13.
const rdmaNotify = 4

// hints subscribes to changes of interfaces and of RDMA devices. What the kernel does not offer is left out: the listings find the
// changes, later.
func hints(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	hint := func() {
		select {
		case ch <- struct{}{}:
		default: // one is waiting
		}
	}
	updates := make(chan vnetlink.LinkUpdate)
	ignore := func(error) { hint() } // messages may have been lost
	if err := vnetlink.LinkSubscribeWithOptions(updates, ctx.Done(), vnetlink.LinkSubscribeOptions{ErrorCallback: ignore}); err == nil {
		go func() {
			for range updates {
				hint()
			}
		}()
	}
	if conn, err := netlink.Dial(unix.NETLINK_RDMA, &netlink.Config{Groups: 1 << (rdmaNotify - 1)}); err == nil {
		context.AfterFunc(ctx, func() { _ = conn.Close() })
		go func() {
			for {
				if _, err := conn.Receive(); err != nil {
					return
				}
				hint()
			}
		}()
	}
	return ch
}
