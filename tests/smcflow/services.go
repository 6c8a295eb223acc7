// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"net/netip"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// newServices makes the command for the traffic of services whose sockets are TCP's: rules may make them SMC.
func newServices() *cobra.Command {
	return &cobra.Command{
		Use:   "services short|long|mixed",
		Short: "Have a service with many short connections, one with a long one, or both, and print the seconds that they take",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			runtime.GOMAXPROCS(4) // a thread in a raw system call has one to itself
			begin := time.Now()
			if args[0] != "long" {
				if _, err := connects(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:19998")); err != nil {
					return err
				}
			}
			if args[0] != "short" {
				if _, err := throughput(unix.AF_INET, netip.MustParseAddrPort("127.0.0.1:19999")); err != nil {
					return err
				}
			}
			fmt.Printf("%.6f\n", time.Since(begin).Seconds())
			return nil
		},
	}
}
