// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ism

import (
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

// TestRebootedHost has the kernel of a host end in several ways while its emulator, and so its membership, goes on. The connections of its peer end
// at once, or, if the kernel cannot do anything any more, when its module joins again. All memory is free then, and connections use SMC-D.
func TestRebootedHost(t *testing.T) {
	onKernels(t, rebootedHost)
}

func rebootedHost(t *testing.T, kernel string) {
	lt := boot(t, lab.Options{Kernel: kernel, Hosts: 2, Reboots: true, Fabric: lab.Fabric{Size: 16 << 20, Members: 2}})
	for _, c := range []struct {
		name, command string
		silent        bool // it does not tell its peers
	}{
		{"reboot", "exec busybox reboot -f", false},
		{"crash", "echo c >/proc/sysrq-trigger", false},
		{"reset", "echo b >/proc/sysrq-trigger", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			address, _ := serve(lt, "echo", 5022)
			p := keep(t, lt, address, 10)
			lt.EndKernel("b", "echo 1 >/proc/sys/kernel/sysrq; "+c.command)
			if !c.silent {
				fails(t, p)
				nothingUsed(t, lt, "a")
			}
			lt.AwaitKernel("b")
			setUpAgain(t, lt, "b")
			if c.silent {
				fails(t, p)
				nothingUsed(t, lt, "a")
			}
			address, echo := serve(lt, "echo", 5022)
			onlySMCDFrom(t, lt, address, 20)
			lab.Kill(t, echo)
			nothingUsed(t, lt, "b")
		})
	}
	unloads(t, lt, "a")
	unloads(t, lt, "b")
}
