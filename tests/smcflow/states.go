// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// states keeps connections of a program with itself, each in another state. Its fields keep the open sockets.
type states struct {
	addr     netip.AddrPort
	listener int
	open     []*os.File
}

func newStates() *cobra.Command {
	return addressCommand("states",
		"Connect to oneself, some idle, some closing; print each client's port and what it has sent, then 'ready'; hold",
		func(ctx context.Context, addr netip.AddrPort) error {
			l, err := listen(addr)
			if err != nil {
				return err
			}
			s := &states{addr: addr, listener: l}
			for _, act := range []func() error{s.idle, s.idle, s.busy, s.half, s.closing, s.waiting} {
				if err := act(); err != nil {
					return err
				}
			}
			fmt.Println("ready")
			<-ctx.Done()
			return nil
		})
}

// client connects and returns its port.
func (s *states) client(name string, sent, received int) (*os.File, error) {
	fd, err := connect(s.addr)
	if err != nil {
		return nil, err
	}
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return nil, fmt.Errorf("getsockname: %w", err)
	}
	sa4, ok := sa.(*unix.SockaddrInet4)
	if !ok {
		return nil, fmt.Errorf("getsockname: %T", sa)
	}
	fmt.Println(name, sa4.Port, sent, received)
	f := os.NewFile(uintptr(fd), name)
	s.open = append(s.open, f)
	return f, nil
}

// pair makes a connection with both its ends.
func (s *states) pair(name string, sent, received int) (client, server *os.File, err error) {
	client, err = s.client(name, sent, received)
	if err != nil {
		return nil, nil, err
	}
	fd, _, err := unix.Accept4(s.listener, unix.SOCK_CLOEXEC)
	if err != nil {
		return nil, nil, fmt.Errorf("accept: %w", err)
	}
	server = os.NewFile(uintptr(fd), name)
	s.open = append(s.open, server)
	return client, server, nil
}

func (s *states) idle() error {
	_, _, err := s.pair("idle", 0, 0)
	return err
}

// busy sends more than the ring holds, and leaves the last part unread.
func (s *states) busy() error {
	const all, read = 200000, 190000
	client, server, err := s.pair("busy", all, read)
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	go func() {
		_, err := client.Write(make([]byte, all))
		written <- err
	}()
	if _, err := io.ReadFull(server, make([]byte, read)); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return <-written
}

// half is a connection whose client has shut down the sending direction.
func (s *states) half() error {
	client, _, err := s.pair("half", 0, 0)
	if err != nil {
		return err
	}
	return unix.Shutdown(int(client.Fd()), unix.SHUT_WR)
}

// closing is a connection that the client has closed, and that waits for the server.
func (s *states) closing() error {
	client, _, err := s.pair("closing", 0, 0)
	if err != nil {
		return err
	}
	return client.Close()
}

// waiting is a connection that is not accepted.
func (s *states) waiting() error {
	_, err := s.client("waiting", 0, 0)
	return err
}
