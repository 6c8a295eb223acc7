// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Talk is a Go program without any knowledge of AF_SMC:
//
//	talk serve ADDRESS                    answers each connection with what it is sent
//	talk ask ADDRESS CONNECTIONS THREADS  sends, compares the answers, and closes all connections in the end
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"golang.org/x/sync/errgroup"
)

func main() {
	var err error
	switch {
	case len(os.Args) == 3 && os.Args[1] == "serve":
		err = serve(os.Args[2])
	case len(os.Args) == 5 && os.Args[1] == "ask":
		err = ask(os.Args[2], os.Args[3], os.Args[4])
	default:
		err = fmt.Errorf("arguments %q", os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "talk:", err)
		os.Exit(1)
	}
}

func serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(conn, conn)
			conn.Close()
		}()
	}
}

func ask(addr, connections, threads string) error {
	n, err := strconv.Atoi(connections)
	if err != nil {
		return err
	}
	limit, err := strconv.Atoi(threads)
	if err != nil {
		return err
	}
	conns := make([]net.Conn, n)
	var talks errgroup.Group
	talks.SetLimit(limit)
	for i := range conns {
		talks.Go(func() (err error) {
			if conns[i], err = net.Dial("tcp", addr); err != nil {
				return err
			}
			return exchange(conns[i], bytes.Repeat([]byte{byte(i), 'x'}, 4096))
		})
	}
	if err := talks.Wait(); err != nil {
		return err
	}
	for _, c := range conns {
		c.Close()
	}
	return nil
}

func exchange(conn net.Conn, data []byte) error {
	if _, err := conn.Write(data); err != nil {
		return err
	}
	answer := make([]byte, len(data))
	if _, err := io.ReadFull(conn, answer); err != nil {
		return err
	}
	if !bytes.Equal(data, answer) {
		return fmt.Errorf("the answer differs")
	}
	return nil
}
