// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Command smcflow generates traffic on AF_SMC sockets for the demo, tests and benchmarks. It can be a sink, a source that
// measures the rate, a holder of many sockets, and a program with connections in every state.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func main() {
	root := &cobra.Command{Use: "smcflow", SilenceUsage: true}
	root.AddCommand(newSink(), newSource(), newHold(), newMeasure(), newCompare(), newRate(), newStalls(), newLate(), newServices(), newStates(), newEcho(), newCheck(), newLife(), newKeep())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	defer stop()
	if root.ExecuteContext(ctx) != nil {
		os.Exit(1)
	}
}

func newSink() *cobra.Command {
	return addressCommand("sink", "Accept connections, read all they bring, and answer each with one byte at its end",
		func(_ context.Context, addr netip.AddrPort) error { return serve(addr, drain) })
}

// drain reads a connection to its end.
func drain(conn *os.File) {
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{conn}, make([]byte, 128<<10)); err == nil {
		_, _ = conn.Write([]byte{1})
	}
}

func newSource() *cobra.Command {
	var seconds float64
	var wait bool
	var conns int
	cmd := addressCommand("source", "Send for a while, on one connection or several, wait until all has arrived, and print MiB/s",
		func(ctx context.Context, addr netip.AddrPort) error {
			rates := make([]float64, conns)
			err := eachConnection(ctx, conns, func(ctx context.Context, i int) (err error) {
				rates[i], err = stream(ctx, addr, wait, time.Duration(seconds*float64(time.Second)))
				return err
			})
			if err != nil {
				return err
			}
			var sum float64
			for _, rate := range rates {
				sum += rate
			}
			fmt.Printf("%.1f MiB/s\n", sum)
			return nil
		})
	cmd.Flags().Float64Var(&seconds, "seconds", 5, "how long to send")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the other side listens")
	cmd.Flags().IntVar(&conns, "conns", 1, "connections at once")
	return cmd
}

// stream connects, waits for the other side to listen if necessary, and sends for d. It returns the rate in MiB/s.
func stream(ctx context.Context, addr netip.AddrPort, wait bool, d time.Duration) (float64, error) {
	fd, err := connect(addr)
	for wait && errors.Is(err, unix.ECONNREFUSED) && ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond) // the other side's listen is the condition
		fd, err = connect(addr)
	}
	if err != nil {
		return 0, err
	}
	return send(ctx, fd, d)
}

// send writes to fd for d and returns the rate in MiB/s, counted until the other side has confirmed the end.
func send(ctx context.Context, fd int, d time.Duration) (float64, error) {
	conn := os.NewFile(uintptr(fd), "smc")
	defer conn.Close()
	buf := make([]byte, 128<<10)
	begin := time.Now()
	var sent int
	for time.Since(begin) < d && ctx.Err() == nil {
		n, err := conn.Write(buf)
		sent += n
		if err != nil {
			return 0, fmt.Errorf("write: %w", err)
		}
	}
	if err := unix.Shutdown(fd, unix.SHUT_WR); err != nil {
		return 0, fmt.Errorf("shutdown: %w", err)
	}
	if _, err := io.ReadFull(conn, buf[:1]); err != nil {
		return 0, fmt.Errorf("waiting for the other side's last word: %w", err)
	}
	return float64(sent) / (1 << 20) / time.Since(begin).Seconds(), nil
}

func newHold() *cobra.Command {
	var count int
	var tcp bool
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Open that many listening AF_SMC sockets, print 'ready', and hold them until a signal comes",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			// Ports are given, 10,000 an address: a search for free ones takes longer the fewer there are.
			const base, each = 20000, 10000
			family, addr := unix.AF_SMC, netip.MustParseAddr("127.0.0.1")
			if tcp {
				family, addr = unix.AF_INET, netip.MustParseAddr("127.128.0.1")
			}
			for i := range count {
				if i > 0 && i%each == 0 {
					addr = addr.Next()
				}
				if _, err := listenOn(family, netip.AddrPortFrom(addr, uint16(base+i%each))); err != nil {
					return err
				}
			}
			fmt.Println("ready")
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().IntVar(&count, "count", 1, "number of sockets")
	cmd.Flags().BoolVar(&tcp, "tcp", false, "TCP sockets instead")
	return cmd
}

func newMeasure() *cobra.Command {
	return &cobra.Command{
		Use:   "measure PROGRAM [ARG...]",
		Short: "Run a program without its output; print its time in seconds and the most memory that it had in KiB",
		Args:  cobra.MinimumNArgs(1),
		// Arguments after the program's name belong to the program.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			c := exec.CommandContext(cmd.Context(), args[0], args[1:]...)
			begin := time.Now()
			if err := c.Run(); err != nil {
				return err
			}
			elapsed := time.Since(begin)
			usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage)
			if !ok {
				return errors.New("no resource usage")
			}
			fmt.Println(elapsed.Seconds(), usage.Maxrss)
			return nil
		},
	}
}

// socket opens a socket of the given family, AF_SMC or the address's own, and returns addr as the system calls want it.
func socket(family int, addr netip.AddrPort) (int, unix.Sockaddr, error) {
	proto, sa := 0, unix.Sockaddr(nil)
	if addr.Addr().Is4() {
		sa = &unix.SockaddrInet4{Port: int(addr.Port()), Addr: addr.Addr().As4()}
	} else {
		proto, sa = 1, &unix.SockaddrInet6{Port: int(addr.Port()), Addr: addr.Addr().As16()}
	}
	if family != unix.AF_SMC {
		proto = 0
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, proto)
	if err != nil {
		return -1, nil, fmt.Errorf("socket of family %d: %w", family, err)
	}
	return fd, sa, nil
}

func listen(addr netip.AddrPort) (int, error) { return listenOn(unix.AF_SMC, addr) }

func listenOn(family int, addr netip.AddrPort) (int, error) {
	fd, sa, err := socket(family, addr)
	if err != nil {
		return -1, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1); err != nil {
		return -1, fmt.Errorf("SO_REUSEADDR: %w", err)
	}
	if err := unix.Bind(fd, sa); err != nil {
		return -1, fmt.Errorf("bind to %s: %w", addr, err)
	}
	if err := unix.Listen(fd, 1024); err != nil {
		return -1, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return fd, nil
}

func connect(addr netip.AddrPort) (int, error) { return connectOn(unix.AF_SMC, addr) }

func connectOn(family int, addr netip.AddrPort) (int, error) {
	fd, sa, err := socket(family, addr)
	if err != nil {
		return -1, err
	}
	if err := unix.Connect(fd, sa); err != nil {
		return -1, fmt.Errorf("connect to %s: %w", addr, err)
	}
	return fd, nil
}
