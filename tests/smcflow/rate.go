// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"maps"
	"net/netip"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// jobs are those of contests, for sockets of TCP alone.
var jobs = map[string]func(int, netip.AddrPort) (float64, error){
	"sockets": makes, "connect": connects, "throughput": throughput, "latency": pingPong,
}

func newRate() *cobra.Command {
	var rounds int
	cmd := &cobra.Command{
		Use:   "rate JOB",
		Short: "Do a job with sockets of TCP, and print rates",
		Long: "Do a job with sockets of TCP, and print the rate of each round. It needs no module, and asks none. Jobs: " +
			strings.Join(slices.Sorted(maps.Keys(jobs)), ", ") + ".",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			job, ok := jobs[args[0]]
			if !ok {
				return fmt.Errorf("no job %q", args[0])
			}
			runtime.GOMAXPROCS(4) // a thread in a raw system call has one to itself
			// The first round warms up and is not printed.
			for round := range 1 + rounds {
				rate, err := withoutGC(job, unix.AF_INET)
				if err != nil {
					return err
				}
				if round > 0 {
					fmt.Printf("%.1f\n", rate)
				}
			}
			return nil
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 6, "number of rounds")
	return cmd
}

// withoutGC does a job. It collects garbage before and not during the job, when the runtime could not stop threads in raw system calls.
func withoutGC(job func(int, netip.AddrPort) (float64, error), family int) (float64, error) {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	return job(family, netip.MustParseAddrPort("127.0.0.1:19999"))
}
