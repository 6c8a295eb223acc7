// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import "slices"

// EndKernel has a host's kernel end by a command that does not return, such as one that makes it crash. Options.Reboots has it boot again in the
// same emulator. Nothing can be run on the host until AwaitKernel.
func (lt *Test) EndKernel(host, command string) {
	lt.t.Helper()
	h := lt.Host(host)
	lt.search(h, lt.logs(lt.t.Context())[host])
	lt.off = append(lt.off, host)
	if _, err := h.Start(Cmd{Argv: []string{"/bin/sh", "-euc", command}}); err != nil {
		lt.t.Fatal(err)
	}
}

// AwaitKernel waits until a host has booted again after EndKernel, without anything that it had in memory: modules, addresses, files.
func (lt *Test) AwaitKernel(host string) {
	lt.t.Helper()
	if err := lt.Host(host).greet(lt.t.Context()); err != nil {
		lt.t.Fatal(err)
	}
	lt.off = slices.DeleteFunc(lt.off, func(name string) bool { return name == host })
}
