// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// contest is a job that runs alternately with two kinds of sockets. The job returns its rate per second.
type contest struct {
	challenger, peer side
	job              func(family int, addr netip.AddrPort) (float64, error)
}

// side is the family of its sockets, how many listening AF_SMC sockets are there besides, and a rule of the policy.
type side struct {
	name               string
	family, bystanders int
	rule               string
}

var (
	overSMC  = side{"smc", unix.AF_SMC, 0, ""}
	overTCP  = side{"tcp", unix.AF_INET, 0, ""}
	again    = side{"tcp again", unix.AF_INET, 0, ""}
	amongSMC = side{"tcp among smc", unix.AF_INET, 100, ""}
	// The first rule lets the module decide about each socket when it connects or listens, the second when it is made.
	otherPort = side{"tcp with a rule for another port", unix.AF_INET, 0, "smc port 1"}
	otherUser = side{"tcp with a rule for another user", unix.AF_INET, 0, "smc user 12345"}
	// The rule makes each socket SMC.
	byRule = side{"smc by a rule", unix.AF_INET, 0, "smc"}
)

var contests = map[string]contest{
	"throughput": {overSMC, overTCP, throughput},
	"latency":    {overSMC, overTCP, pingPong},
	"connect":    {overSMC, overTCP, connects},
	"by-rule":    {byRule, overTCP, connects},
	"bystanders": {amongSMC, overTCP, connects},
	// Rules that do not match.
	"port-sockets":    {otherPort, overTCP, makes},
	"port-connect":    {otherPort, overTCP, connects},
	"port-throughput": {otherPort, overTCP, throughput},
	"user-sockets":    {otherUser, overTCP, makes},
	"user-connect":    {otherUser, overTCP, connects},
	// The ratio of two equal sides, which shows the noise.
	"noise": {again, overTCP, connects},
}

func newCompare() *cobra.Command {
	var rounds int
	cmd := &cobra.Command{
		Use:   "compare JOB",
		Short: "Do a job with two kinds of sockets in turns, and print rates and ratios",
		Long:  "Do a job with two kinds of sockets in turns, and print rates and ratios. Jobs: " + strings.Join(slices.Sorted(maps.Keys(contests)), ", ") + ".",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			c, ok := contests[args[0]]
			if !ok {
				return fmt.Errorf("no job %q", args[0])
			}
			runtime.GOMAXPROCS(4) // a thread in a raw system call has one to itself
			return c.run(rounds)
		},
	}
	cmd.Flags().IntVar(&rounds, "rounds", 10, "number of turns of each side")
	return cmd
}

// run prints the rates of both sides and their ratio, with one line for each round. The side that begins alternates, so that a
// trend over time favours neither. The first round warms up and is not printed.
func (c contest) run(rounds int) error {
	for round := range 1 + rounds {
		order := []side{c.challenger, c.peer}
		if round%2 == 1 {
			slices.Reverse(order)
		}
		rates := map[side]float64{}
		for _, s := range order {
			rate, err := s.turn(c.job)
			if err != nil {
				return err
			}
			rates[s] = rate
		}
		if a, b := rates[c.challenger], rates[c.peer]; round > 0 {
			fmt.Printf("%.1f %.1f %.4f\n", a, b, a/b)
		}
	}
	return nil
}

// turn does a job once, among bystanders, and under a rule.
func (s side) turn(job func(int, netip.AddrPort) (float64, error)) (float64, error) {
	for i := range s.bystanders {
		fd, err := listenOn(unix.AF_SMC, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.2"), uint16(20000+i)))
		if err != nil {
			return 0, err
		}
		defer unix.Close(fd)
	}
	if err := setRule(s.rule); err != nil {
		return 0, err
	}
	return withoutGC(job, s.family)
}

// between connects the program to itself: serve and dial run at the same time, each on its own thread.
func between(family int, addr netip.AddrPort, serve func(listener int) error, dial func(family int) error) (time.Duration, error) {
	l, err := listenOn(family, addr)
	if err != nil {
		return 0, err
	}
	defer unix.Close(l)
	served := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		served <- serve(l)
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	if err := dial(family); err != nil {
		return 0, err
	}
	return time.Since(begin), <-served
}

// once makes a server that handles one connection.
func once(serve func(fd int) error) func(int) error {
	return func(l int) error {
		fd, _, err := unix.Accept4(l, unix.SOCK_CLOEXEC)
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		defer unix.Close(fd)
		return serve(fd)
	}
}

// dialled makes a client that handles one connection.
func dialled(addr netip.AddrPort, talk func(fd int) error) func(int) error {
	return func(family int) error {
		fd, err := connectOn(family, addr)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return talk(fd)
	}
}

// throughput returns MiB/s.
func throughput(family int, addr netip.AddrPort) (float64, error) {
	const total, piece = 16 << 20, 128 << 10
	receive := func(fd int) error { return repeatRead(fd, make([]byte, piece), total) }
	send := func(fd int) error {
		if err := repeatWrite(fd, make([]byte, piece), total); err != nil {
			return err
		}
		return expectEnd(fd)
	}
	elapsed, err := between(family, addr, once(receive), dialled(addr, send))
	return total / float64(1<<20) / elapsed.Seconds(), err
}

// pingPong returns round trips per second of one byte.
func pingPong(family int, addr netip.AddrPort) (float64, error) {
	const count = 1000
	echo := func(fd int) error {
		b := make([]byte, 1)
		for range count {
			if err := errors.Join(repeatRead(fd, b, 1), repeatWrite(fd, b, 1)); err != nil {
				return err
			}
		}
		return nil
	}
	ask := func(fd int) error {
		b := make([]byte, 1)
		for range count {
			if err := errors.Join(repeatWrite(fd, b, 1), repeatRead(fd, b, 1)); err != nil {
				return err
			}
		}
		return nil
	}
	elapsed, err := between(family, addr, once(echo), dialled(addr, ask))
	return count / elapsed.Seconds(), err
}

// makes returns sockets per second that are made and closed.
func makes(family int, _ netip.AddrPort) (float64, error) {
	const count = 2000
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := time.Now()
	for range count {
		fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
		}
		if errno != 0 {
			return 0, errno
		}
	}
	return count / time.Since(begin).Seconds(), nil
}

// connects returns connections per second that are made, move one byte, and are closed.
func connects(family int, addr netip.AddrPort) (float64, error) {
	const count = 200
	accept := func(l int) error {
		answer := once(func(fd int) error { return repeatWrite(fd, make([]byte, 1), 1) })
		for range count {
			if err := answer(l); err != nil {
				return err
			}
		}
		return nil
	}
	call := func(family int) error {
		one := dialled(addr, func(fd int) error { return errors.Join(repeatRead(fd, make([]byte, 1), 1), expectEnd(fd)) })
		for range count {
			if err := one(family); err != nil {
				return err
			}
		}
		return nil
	}
	elapsed, err := between(family, addr, accept, call)
	return count / elapsed.Seconds(), err
}

// raw makes a system call that keeps its thread. The Go scheduler handles a long call in its own way, which would add noise
// to the measurement.
func raw(call uintptr, fd int, buf []byte) (int, error) {
	n, _, errno := unix.RawSyscall(call, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// repeatRead reads total bytes, into buf again and again.
func repeatRead(fd int, buf []byte, total int) error {
	for total > 0 {
		n, err := raw(unix.SYS_READ, fd, buf[:min(total, len(buf))])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err == nil && n == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("read: %w", err)
		}
		total -= n
	}
	return nil
}

// repeatWrite writes total bytes, from buf again and again.
func repeatWrite(fd int, buf []byte, total int) error {
	for total > 0 {
		n, err := raw(unix.SYS_WRITE, fd, buf[:min(total, len(buf))])
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("write: %w", err)
		}
		total -= n
	}
	return nil
}

// expectEnd waits for the other side's close.
func expectEnd(fd int) error {
	n, err := raw(unix.SYS_READ, fd, make([]byte, 1))
	for errors.Is(err, unix.EINTR) {
		n, err = raw(unix.SYS_READ, fd, make([]byte, 1))
	}
	if err == nil && n != 0 {
		err = errors.New("data instead")
	}
	if err != nil {
		return fmt.Errorf("waiting for the other side's end: %w", err)
	}
	return nil
}
