// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func newLife() *cobra.Command {
	return addressCommand("life", "Go with an echo, one step after another, through what can happen to connections, and print 'ok'",
		func(_ context.Context, addr netip.AddrPort) error {
			if err := live(addr); err != nil {
				return err
			}
			fmt.Println("ok")
			return nil
		})
}

// live makes three connections at once, each of which ends in another way.
func live(addr netip.AddrPort) error {
	var conns [3]*os.File
	for i := range conns {
		fd, err := connect(addr)
		if err != nil {
			return err
		}
		conns[i] = os.NewFile(uintptr(fd), "smc")
		defer conns[i].Close()
		for _, size := range []int{100, 5000} {
			if err := converse(conns[i], size, 0); err != nil {
				return fmt.Errorf("connection %d: %w", i, err)
			}
		}
	}
	// Send more than the rings hold, so that both sides must report that they have read.
	for range 3 {
		if err := converse(conns[0], 60000, 0); err != nil {
			return err
		}
	}
	if err := unix.Sendto(int(conns[1].Fd()), []byte{'!'}, unix.MSG_OOB, nil); err != nil {
		return fmt.Errorf("urgent data: %w", err)
	}
	// The echo leaves the urgent byte out.
	if err := converse(conns[1], 100, 0); err != nil {
		return fmt.Errorf("after urgent data: %w", err)
	}
	return errors.Join(halfClose(conns[2]), abort(conns[1]), conns[0].Close())
}

// converse sends bytes and receives their echo. Those of another seed are others.
func converse(conn *os.File, size, seed int) error {
	sent, got := make([]byte, size), make([]byte, size)
	pattern(sent, seed, 0)
	if _, err := conn.Write(sent); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if _, err := io.ReadFull(conn, got); err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(got, sent) {
		return errors.New("what came back is not what was sent")
	}
	return nil
}

// halfClose ends one direction, and waits for the other to end.
func halfClose(conn *os.File) error {
	if err := unix.Shutdown(int(conn.Fd()), unix.SHUT_WR); err != nil {
		return fmt.Errorf("shutdown: %w", err)
	}
	if n, err := conn.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		return fmt.Errorf("after a shutdown came %d bytes: %w", n, err)
	}
	return conn.Close()
}

// abort closes a connection with unread data.
func abort(conn *os.File) error {
	if _, err := conn.Write([]byte("unread")); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	if _, _, err := unix.Recvfrom(int(conn.Fd()), make([]byte, 1), unix.MSG_PEEK); err != nil {
		return fmt.Errorf("peek: %w", err)
	}
	return conn.Close()
}
