// SPDX-License-Identifier: Apache-2.0

package seccomp

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// netns identifies a network namespace by the device and inode of its file in /proc.
type netns struct{ dev, inode uint64 }

// netnsError means that the supervisor cannot enter the network namespace of a program.
type netnsError struct{ error }

func (e *netnsError) Unwrap() error { return e.error }

// ownNetNS returns the namespace of this process.
func ownNetNS() (netns, error) { return netnsAt("/proc/self/ns/net") }

func netnsAt(path string) (netns, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return netns{}, fmt.Errorf("%s: %w", path, err)
	}
	return netns{uint64(st.Dev), st.Ino}, nil
}

// enter moves the worker's thread into the network namespace of a program, if it is in another one, until leave is called. A
// thread that stayed there would keep the namespace alive.
func (w *worker) enter(pid int) (leave func(), err error) {
	path := fmt.Sprintf("/proc/%d/ns/net", pid)
	there, err := netnsAt(path)
	if err != nil {
		return nil, &netnsError{err}
	}
	if there == w.net {
		return func() {}, nil
	}
	if err := w.move(path); err != nil {
		return nil, &netnsError{err}
	}
	return func() {
		// No cause is known for this to fail. If it does, w.net still names the namespace that the thread is in.
		_ = w.move("/proc/self/ns/net")
	}, nil
}

// move moves the worker's thread. The main thread of this process never moves.
func (w *worker) move(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return err
	}
	w.net, err = netnsAt("/proc/thread-self/ns/net")
	return err
}
