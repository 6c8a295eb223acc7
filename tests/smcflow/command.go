// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// addressCommand returns a command whose only argument is an address and port.
func addressCommand(name, short string, run func(ctx context.Context, addr netip.AddrPort) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ADDRESS",
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			addr, err := netip.ParseAddrPort(args[0])
			if err != nil {
				return err
			}
			return run(cmd.Context(), addr)
		},
	}
}

// serve listens, prints 'ready', and calls handle on a goroutine for each connection. It closes the connection when handle
// returns. It returns only with an error.
func serve(addr netip.AddrPort, handle func(conn *os.File)) error {
	l, err := listen(addr)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
			continue
		}
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go func() {
			conn := os.NewFile(uintptr(fd), "smc")
			defer conn.Close()
			handle(conn)
		}()
	}
}

// eachConnection calls run for each of n connections at once, and returns the first error when all have returned. The error
// names its connection, and cancels the context of the others.
func eachConnection(ctx context.Context, n int, run func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for i := range n {
		g.Go(func() error {
			if err := run(ctx, i); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
			return nil
		})
	}
	return g.Wait()
}
