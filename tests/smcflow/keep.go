// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newKeep() *cobra.Command {
	var conns int
	var d dialogue
	cmd := addressCommand("keep", "Have an echo send back data over connections that stay open until a signal comes, compare it, and print how long the longest round has taken",
		func(ctx context.Context, addr netip.AddrPort) error {
			longest := make([]time.Duration, conns)
			err := eachConnection(ctx, conns, func(ctx context.Context, i int) (err error) {
				longest[i], err = d.keep(ctx, addr, i)
				return err
			})
			if err == nil {
				fmt.Println(slices.Max(longest))
			}
			return err
		})
	cmd.Flags().IntVar(&conns, "conns", 1, "connections")
	cmd.Flags().IntVar(&d.size, "size", 1000, "bytes each way in a round")
	cmd.Flags().DurationVar(&d.pause, "pause", 10*time.Millisecond, "time between rounds")
	cmd.Flags().BoolVar(&d.urgent, "urgent", false, "begin each round with an urgent byte, which the echo leaves out")
	return cmd
}

// dialogue is what a connection does in each round.
type dialogue struct {
	size   int
	pause  time.Duration
	urgent bool
}

// keep exchanges data on one connection until the context ends, and returns how long the longest round has taken.
func (d dialogue) keep(ctx context.Context, addr netip.AddrPort, seed int) (longest time.Duration, err error) {
	fd, err := connect(addr)
	if err != nil {
		return 0, err
	}
	conn := os.NewFile(uintptr(fd), "smc")
	defer conn.Close()
	for rounds := 0; ctx.Err() == nil; rounds++ {
		begun := time.Now()
		if d.urgent {
			err = unix.Sendto(fd, []byte{'!'}, unix.MSG_OOB, nil)
		}
		if err == nil {
			err = converse(conn, d.size, seed+rounds)
		}
		if err != nil {
			return 0, fmt.Errorf("after %d rounds: %w", rounds, err)
		}
		longest = max(longest, time.Since(begun))
		time.Sleep(d.pause) // the rate of the traffic
	}
	return longest, nil
}
