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

// BenchmarkCalls measures how much longer system calls take under the filter: calls that the filter lets pass, and socket(),
// which the supervisor answers.
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
			// Alternate between the two, so that a busy moment of the machine affects both.
			for b.Loop() {
				plain += duration(b, exec.CommandContext(b.Context(), argv[0], argv[1:]...))
				supervised += duration(b, under(b, c.b, argv...))
			}
			b.ReportMetric(supervised.Seconds()/plain.Seconds(), "x-unsupervised")
			b.ReportMetric(float64(supervised.Nanoseconds())/float64(b.N*callsPerRun[c.program]), "ns/call")
		})
	}
}

// duration runs a program and returns the duration of its calls, which it prints.
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

// callsPerRun has, for each kind of call, how many calls a program makes.
var callsPerRun = map[string]int{"getppid": 1_000_000, "unix": 50_000, "tcp": 5_000}

// calls makes system calls of one kind and prints how many nanoseconds they took. It measures processor time, which other
// programs do not affect, except for calls that wait for the supervisor, where it measures elapsed time.
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
