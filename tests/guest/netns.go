// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// The main thread does not end when its goroutine does, so no test may run on it: InNamespace would leave it in the namespace.
func init() { runtime.LockOSThread() }

// InNamespace calls do on a thread in the network namespace that "ip netns add" made under this name, and returns its error.
// The thread then ends. Goroutines that do starts run in the namespace of the program.
func InNamespace(name string, do func() error) error {
	return onThread(func() error {
		ns, err := unix.Open("/run/netns/"+name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(ns)
		if err := unix.Setns(ns, unix.CLONE_NEWNET); err != nil {
			return err
		}
		return do()
	})
}

// InNewNamespace is InNamespace with a namespace that is made for the call. Sockets can keep it alive afterwards.
func InNewNamespace(do func() error) error {
	return onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
		return do()
	})
}

// onThread calls a function on a thread that ends afterwards.
func onThread(do func() error) error {
	result := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked
		result <- do()
	}()
	return <-result
}
