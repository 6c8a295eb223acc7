// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package smctrace reads tracepoints of the SMC modules through a trace instance of its own, so that it neither changes nor disturbs
// other users of the tracer.
package smctrace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrNoEvents means that the kernel has none of the tracepoints.
var ErrNoEvents = errors.New("the loaded SMC module has no tracepoints (Linux 5.16 and newer have)")

// prefix begins the names of instances. The process that uses one and its start time follow, by which instances of killed processes are
// recognised.
const prefix = "smckit-"

// bufferKiB is the size of the buffer of each processor.
const bufferKiB = 128

// Dir is a mounted tracefs.
type Dir struct {
	path string
	// fd is the mount, if this process has made one of its own; -1 otherwise.
	fd int
	// proc is the mount point of procfs.
	proc string
}

// Open finds tracefs, or mounts it where no other process sees it: in a network namespace that the command has entered, /sys does not
// have it.
func Open() (*Dir, error) {
	const usual = "/sys/kernel/tracing"
	_, err := os.Stat(filepath.Join(usual, "instances"))
	switch {
	case err == nil:
		return &Dir{path: usual, fd: -1, proc: "/proc"}, nil
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("%s: %w", usual, fs.ErrPermission)
	}
	fd, err := mount()
	if err != nil {
		return nil, fmt.Errorf("cannot mount tracefs: %w", err)
	}
	return &Dir{path: fmt.Sprintf("/proc/self/fd/%d", fd), fd: fd, proc: "/proc"}, nil
}

// mount returns a tracefs that is not in any directory.
func mount() (int, error) {
	ctx, err := unix.Fsopen("tracefs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(ctx)
	if err := unix.FsconfigCreate(ctx); err != nil {
		return -1, err
	}
	return unix.Fsmount(ctx, unix.FSMOUNT_CLOEXEC, 0)
}

// Close releases a mount that Open has made.
func (d *Dir) Close() error {
	if d.fd < 0 {
		return nil
	}
	return unix.Close(d.fd)
}

// Instance is a trace instance with events enabled.
type Instance struct {
	path string
	pipe int
	// Events are the names of the enabled events.
	Events []string
}

// NewInstance makes an instance with those of the events, such as smc/smcr_link_down, that the kernel has. It removes instances that
// killed processes have left. The caller calls Remove.
func (d *Dir) NewInstance(events ...string) (*Instance, error) {
	d.removeStale()
	start, err := d.startTime(os.Getpid())
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.path, "instances", fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), start))
	if err := os.Mkdir(path, 0o700); err != nil {
		return nil, err
	}
	i := &Instance{path: path, pipe: -1}
	if err := i.enable(events); err != nil {
		return nil, errors.Join(err, i.Remove())
	}
	return i, nil
}

func (i *Instance) enable(events []string) error {
	if err := i.write("buffer_size_kb", strconv.Itoa(bufferKiB)); err != nil {
		return err
	}
	// Otherwise, poll() waits until half of the buffer is full.
	if err := i.write("buffer_percent", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range events {
		err := i.write(filepath.Join("events", e, "enable"), "1")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		i.Events = append(i.Events, e)
	}
	if len(i.Events) == 0 {
		return ErrNoEvents
	}
	var err error
	i.pipe, err = unix.Open(filepath.Join(i.path, "trace_pipe"), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	return err
}

// write does not create the file: in tracefs, the kernel has made all.
func (i *Instance) write(name, text string) error {
	f, err := os.OpenFile(filepath.Join(i.path, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// Remove removes the instance. The kernel refuses that while a file of it is open.
func (i *Instance) Remove() error {
	if i.pipe >= 0 {
		_ = unix.Close(i.pipe)
		i.pipe = -1
	}
	return os.Remove(i.path)
}

// Read calls line with each line of the trace until ctx ends.
func (i *Instance) Read(ctx context.Context, line func(string)) error {
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return err
	}
	defer unix.Close(wake)
	stop := context.AfterFunc(ctx, func() { _, _ = unix.Write(wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
	defer stop()

	var rest []byte
	buf := make([]byte, 64<<10)
	fds := []unix.PollFd{{Fd: int32(i.pipe), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	for ctx.Err() == nil {
		n, err := unix.Read(i.pipe, buf)
		switch {
		case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR), err == nil && n == 0:
			if _, err := unix.Poll(fds, -1); err != nil && !errors.Is(err, unix.EINTR) {
				return err
			}
			continue
		case err != nil:
			return err
		}
		rest = append(rest, buf[:n]...)
		for {
			text, after, found := bytes.Cut(rest, []byte("\n"))
			if !found {
				break
			}
			line(string(text))
			rest = after
		}
	}
	return ctx.Err()
}

// removeStale removes the instances of processes that have been killed. It leaves those that it cannot remove.
func (d *Dir) removeStale() {
	entries, err := os.ReadDir(filepath.Join(d.path, "instances"))
	if err != nil {
		return
	}
	for _, e := range entries {
		owner, ok := strings.CutPrefix(e.Name(), prefix)
		pid, start, ok2 := strings.Cut(owner, "-")
		n, err := strconv.Atoi(pid)
		if !ok || !ok2 || err != nil {
			continue
		}
		if now, err := d.startTime(n); err == nil && now == start || err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_ = os.Remove(filepath.Join(d.path, "instances", e.Name()))
	}
}

// startTime returns when a process was started, in the kernel's ticks since the boot.
func (d *Dir) startTime(pid int) (string, error) {
	stat, err := os.ReadFile(filepath.Join(d.proc, strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", err
	}
	// The name of the program, in parentheses, may have any characters. The start time is the 22nd field, the 20th after it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat has %d fields after the name, want 20 or more", pid, len(fields))
	}
	return string(fields[19]), nil
}
