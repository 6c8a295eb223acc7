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

func newEcho() *cobra.Command {
	return addressCommand("echo", "Accept connections, print 'ready' once they can come, and send back all they bring",
		func(_ context.Context, addr netip.AddrPort) error { return serve(addr, sendBack) })
}

func sendBack(conn *os.File) {
	_, _ = io.CopyBuffer(struct{ io.Writer }{conn}, struct{ io.Reader }{conn}, make([]byte, 64<<10))
}

func newCheck() *cobra.Command {
	var conns, rounds, size, chunk int
	cmd := addressCommand("check", "Have an echo send back data over several connections at once, and compare it",
		func(ctx context.Context, addr netip.AddrPort) error {
			err := eachConnection(ctx, conns, func(ctx context.Context, i int) error {
				for round := 0; round < rounds && ctx.Err() == nil; round++ {
					if err := exchange(addr, i, size, chunk); err != nil {
						return err
					}
				}
				return ctx.Err()
			})
			if err != nil {
				return err
			}
			fmt.Println("ok")
			return nil
		})
	cmd.Flags().IntVar(&conns, "conns", 1, "connections at once")
	cmd.Flags().IntVar(&rounds, "rounds", 1, "connections after each other")
	cmd.Flags().IntVar(&size, "size", 1<<20, "bytes each way")
	cmd.Flags().IntVar(&chunk, "chunk", 64<<10, "bytes written at once")
	return cmd
}

// pattern fills a buffer with the bytes that belong at an offset of a connection's stream.
func pattern(buf []byte, seed, pos int) {
	for i := range buf {
		p := pos + i
		buf[i] = byte(p) ^ byte(p>>8)*31 ^ byte(p>>16)*7 ^ byte(seed)
	}
}

// exchange sends bytes on a connection of its own, both ways at once, and closes it in order.
func exchange(addr netip.AddrPort, seed, size, chunk int) error {
	fd, err := connect(addr)
	if err != nil {
		return err
	}
	conn := os.NewFile(uintptr(fd), "smc")
	defer conn.Close()
	written := make(chan error, 1)
	go func() {
		buf := make([]byte, chunk)
		for pos := 0; pos < size; {
			n := min(chunk, size-pos)
			pattern(buf[:n], seed, pos)
			if _, err := conn.Write(buf[:n]); err != nil {
				written <- fmt.Errorf("write at %d: %w", pos, err)
				return
			}
			pos += n
		}
		written <- unix.Shutdown(fd, unix.SHUT_WR)
	}()
	got, want := make([]byte, 64<<10), make([]byte, 64<<10)
	for pos := 0; ; {
		n, err := conn.Read(got)
		if errors.Is(err, io.EOF) {
			if pos != size {
				return errors.Join(fmt.Errorf("the end came after %d of %d bytes", pos, size), <-written)
			}
			return <-written
		}
		if err != nil {
			return fmt.Errorf("read at %d: %w", pos, err)
		}
		pattern(want[:n], seed, pos)
		if !bytes.Equal(got[:n], want[:n]) {
			return fmt.Errorf("wrong data at %d: % x", pos, got[:min(n, 44)])
		}
		pos += n
	}
}
