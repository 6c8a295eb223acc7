// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newStalls() *cobra.Command {
	var changes int
	cmd := &cobra.Command{
		Use:   "stalls",
		Short: "Change a thousand rules again and again, and print how long sockets of another thread take at most",
		Long: "Change a thousand rules again and again, and print how many microseconds another thread takes at most to make a socket, connect it " +
			"to a port where nobody listens, and close it: while the rules change, and while they do not. The thread comes before all others.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 10*time.Minute)
			defer cancel()
			return stalls(ctx, changes)
		},
	}
	cmd.Flags().IntVar(&changes, "changes", 100, "number of changes")
	return cmd
}

func stalls(ctx context.Context, changes int) error {
	c, err := policy.NewContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	var sets [2][]policy.Rule
	for i := range 1000 {
		r := policy.Rule{Verdict: policy.SMC, Role: policy.Any, Ports: []policy.PortRange{{First: uint16(10000 + i), Last: uint16(10000 + i)}}}
		sets[0] = append(sets[0], r)
		r.Verdict = policy.TCP
		sets[1] = append(sets[1], r)
	}
	sets[1][999].Verdict = policy.SMC // the hook stays
	replace := func(n int) error {
		now, err := c.Get(ctx)
		if err != nil {
			return err
		}
		return c.SetRules(ctx, now.Generation, sets[n%2])
	}
	if err := replace(0); err != nil {
		return err
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	busy, err := longest(func() error {
		for n := range changes {
			if err := replace(n + 1); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	quiet, err := longest(func() error { time.Sleep(time.Second); return nil })
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%.1f %.1f\n", float64(busy)/1e3, float64(quiet)/1e3)
	return errors.Join(err, setRule(""))
}

// longest returns the longest time that a thread takes to use a socket while do runs.
func longest(do func() error) (longest time.Duration, err error) {
	stop, end := make(chan struct{}), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // it is not unlocked: the thread ends with the goroutine
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_FIFO, Priority: 50}, 0)
		for err == nil {
			select {
			case <-stop:
				end <- nil
				return
			case <-time.After(time.Millisecond):
			}
			var took time.Duration
			took, err = refused()
			longest = max(longest, took)
		}
		end <- err
	}()
	err = do()
	close(stop)
	return longest, errors.Join(err, <-end)
}

// refused returns how long it takes to make a socket, connect it to a port where nobody listens, and close it.
func refused() (time.Duration, error) {
	sa := &unix.SockaddrInet4{Port: 9, Addr: netip.MustParseAddr("127.0.0.1").As4()}
	begin := time.Now()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	err = unix.Connect(fd, sa)
	unix.Close(fd)
	took := time.Since(begin)
	if !errors.Is(err, unix.ECONNREFUSED) {
		return 0, fmt.Errorf("connect to a port where nobody listens: %w", err)
	}
	return took, nil
}
