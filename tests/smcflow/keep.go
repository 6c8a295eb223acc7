// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/cobra"
)

func newKeep() *cobra.Command {
	var conns, size int
	var pause time.Duration
	cmd := addressCommand("keep", "Have an echo send back data over connections that stay open until a signal comes, and compare it",
		func(ctx context.Context, addr netip.AddrPort) error {
			return eachConnection(ctx, conns, func(ctx context.Context, _ int) error {
				rounds, err := keep(ctx, addr, size, pause)
				if err != nil {
					return fmt.Errorf("after %d rounds: %w", rounds, err)
				}
				return nil
			})
		})
	cmd.Flags().IntVar(&conns, "conns", 1, "connections")
	cmd.Flags().IntVar(&size, "size", 1000, "bytes each way in a round")
	cmd.Flags().DurationVar(&pause, "pause", 10*time.Millisecond, "time between rounds")
	return cmd
}

// keep exchanges data on one connection until the context ends, and returns the number of exchanges.
func keep(ctx context.Context, addr netip.AddrPort, size int, pause time.Duration) (rounds int, err error) {
	fd, err := connect(addr)
	if err != nil {
		return 0, err
	}
	conn := os.NewFile(uintptr(fd), "smc")
	defer conn.Close()
	for ; ctx.Err() == nil; rounds++ {
		if err := converse(conn, size); err != nil {
			return rounds, err
		}
		time.Sleep(pause) // the rate of the traffic
	}
	return rounds, nil
}
