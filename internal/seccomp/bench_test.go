// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// BenchmarkCalls measures system calls that the supervisor is not asked about, under the filter and without, and
// socket() itself: how much longer they take.
func BenchmarkCalls(b *testing.B) {
	need(b)
	for _, c := range []struct {
		name, program string
		b             behaviour
	}{
		{"getppid", "getppid", behaviour{}},
		{"getppid, with rules", "getppid", behaviour{Ports: []uint16{1}}},
		{"socket of Unix", "unix", behaviour{}},
		{"socket of TCP", "tcp", behaviour{}},
		{"socket of TCP, with rules", "tcp", behaviour{Ports: []uint16{1}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var plain, supervised time.Duration
			argv := program(b, "calls", c.program)
			// In turns, so that a busy moment of the machine meets both.
			for b.Loop() {
				plain += duration(b, exec.CommandContext(b.Context(), argv[0], argv[1:]...))
				supervised += duration(b, under(b, c.b, argv...))
			}
			b.ReportMetric(supervised.Seconds()/plain.Seconds(), "x-unsupervised")
			b.ReportMetric(float64(supervised.Nanoseconds())/float64(b.N*callsPerRun[c.program]), "ns/call")
		})
	}
}

// duration is what a program says that its calls have taken.
func duration(b *testing.B, cmd *exec.Cmd) time.Duration {
	b.Helper()
	out, err := cmd.Output()
	if err != nil {
		b.Fatal(err)
	}
	ns, err := strconv.ParseInt(string(out), 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return time.Duration(ns)
}

// callsPerRun is how many calls of a kind a program makes.
var callsPerRun = map[string]int{"getppid": 1_000_000, "unix": 50_000, "tcp": 5_000}

// calls makes system calls of a kind and prints how many nanoseconds they have taken: of processor time, which other programs
// do not change, or, where the program waits, on the clock.
func calls(args []string) error {
	call := map[string]func() error{
		"getppid": func() error { unix.Getppid(); return nil },
		"unix":    func() error { return openSocket(unix.AF_UNIX) },
		"tcp":     func() error { return openSocket(unix.AF_INET) },
	}[args[0]]
	clock := int32(unix.CLOCK_PROCESS_CPUTIME_ID)
	if args[0] == "tcp" {
		clock = unix.CLOCK_MONOTONIC
	}
	var begin, end unix.Timespec
	if err := unix.ClockGettime(clock, &begin); err != nil {
		return err
	}
	for range callsPerRun[args[0]] {
		if err := call(); err != nil {
			return err
		}
	}
	if err := unix.ClockGettime(clock, &end); err != nil {
		return err
	}
	fmt.Print(end.Nano() - begin.Nano())
	return nil
}

func openSocket(domain int) error {
	fd, err := unix.Socket(domain, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	return unix.Close(fd)
}
