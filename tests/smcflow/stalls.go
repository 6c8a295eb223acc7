// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newStalls() *cobra.Command {
	var changes int
	cmd := &cobra.Command{
		Use:   "stalls",
		Short: "Change a thousand rules again and again, and print how late another process is at most",
		Long: "Change a thousand rules again and again, and print by how many microseconds another process is late at most that wakes every " +
			"millisecond, makes a socket, connects it to a port where nobody listens, and closes it: while the rules change, and while they do " +
			"not. That process comes before all others.",
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
	// The collector would wait for the thread that keeps the processor busy.
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer keepBusy()()
	busy, err := longest(ctx, func() error {
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
	quiet, err := longest(ctx, func() error { time.Sleep(200 * time.Millisecond); return nil })
	if err != nil {
		return err
	}
	_, err = fmt.Printf("%.1f %.1f\n", float64(busy)/1e3, float64(quiet)/1e3)
	return errors.Join(err, setRule(""))
}

// keepBusy has a thread run when no other one does, until the function that it returns is called. The clock of a guest that counts instructions
// counts those of a busy processor only; an idle one wakes when the machine below has time for it.
func keepBusy() (stop func()) {
	runtime.GOMAXPROCS(4) // that thread has one to itself
	var over atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // it is not unlocked: the thread ends with the goroutine
		err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0)
		for err == nil && !over.Load() {
			continue
		}
	}()
	return func() {
		over.Store(true)
		<-ended
	}
}

// longest runs the command late while do runs, and returns what it prints. That is another process, whose threads come before all others: the
// scheduler of Go does not know which thread comes first.
func longest(ctx context.Context, do func() error) (time.Duration, error) {
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, "chrt", "--fifo", "50", exe, "late")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	answers := bufio.NewScanner(out)
	if !answers.Scan() {
		return 0, errors.Join(errors.New("the process has not begun to measure"), answers.Err(), cmd.Wait())
	}
	err = errors.Join(do(), in.Close())
	var ns int64
	if answers.Scan() {
		_, scanErr := fmt.Sscan(answers.Text(), &ns)
		err = errors.Join(err, scanErr)
	}
	return time.Duration(ns), errors.Join(err, answers.Err(), cmd.Wait())
}

func newLate() *cobra.Command {
	return &cobra.Command{
		Use:    "late",
		Hidden: true,
		Short:  "Use a socket every millisecond until the input ends, and print by how many nanoseconds that was late at most",
		Long: "Wait for a millisecond, make a socket, connect it to a port where nobody listens, and close it, again and again until the input ends. " +
			"Print a line when that begins, and in the end by how many nanoseconds one turn took longer than a millisecond at most.",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			runtime.GOMAXPROCS(2) // a thread in a raw system call has one to itself
			debug.SetGCPercent(-1)
			var stop atomic.Bool
			go func() {
				_, _ = io.Copy(io.Discard, os.Stdin)
				stop.Store(true)
			}()
			if _, err := late(); err != nil { // the first one warms up
				return err
			}
			fmt.Println("begins")
			var most time.Duration
			for !stop.Load() {
				by, err := late()
				if err != nil {
					return err
				}
				most = max(most, by)
			}
			_, err := fmt.Println(most.Nanoseconds())
			return err
		},
	}
}

// late waits for a millisecond and uses a socket. It returns by how much that took longer than a millisecond: because the thread began late, the
// socket took long, or both.
func late() (time.Duration, error) {
	pause := unix.NsecToTimespec(time.Millisecond.Nanoseconds())
	sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: binary.NativeEndian.Uint16([]byte{0, 9}), Addr: [4]byte{127, 0, 0, 1}}
	begin := time.Now()
	// Raw system calls, because the scheduler of Go handles others that take long in its own way.
	unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if errno != 0 {
		return 0, errno
	}
	_, _, errno = unix.RawSyscall(unix.SYS_CONNECT, fd, uintptr(unsafe.Pointer(&sa)), unsafe.Sizeof(sa))
	unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	took := time.Since(begin)
	if errno != unix.ECONNREFUSED {
		return 0, fmt.Errorf("connect to a port where nobody listens: %w", errno)
	}
	return took - time.Millisecond, nil
}
