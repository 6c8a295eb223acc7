// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io"
	"os"

	"github.com/smckit/smckit/internal/lab/proto"
	"golang.org/x/sys/unix"
)

func readFile(s *proto.Session) error {
	f, err := os.Open(s.Request.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	w := s.Writer(proto.Stdout)
	if _, err := io.Copy(w, onlyReader{f}); err != nil {
		return err
	}
	return w.Close()
}

// writeFile writes in place: files of /proc and /sys cannot be renamed into being.
func writeFile(s *proto.Session) error {
	f, err := os.OpenFile(s.Request.Path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, os.FileMode(s.Request.Mode))
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, s.Reader(proto.Stdin)); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// kernelLog writes the kernel's log records there are now, oldest first.
func kernelLog(w io.WriteCloser) error {
	fd, err := unix.Open("/dev/kmsg", unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	buf := make([]byte, 16<<10)
	for {
		n, err := unix.Read(fd, buf)
		switch {
		case err == unix.EAGAIN:
			return w.Close()
		case err == unix.EPIPE, err == unix.EINTR: // overwritten meanwhile: the sequence numbers show it
			continue
		case err != nil:
			return err
		}
		if _, err := w.Write(buf[:n]); err != nil {
			return err
		}
	}
}
