// SPDX-License-Identifier: Apache-2.0

//go:build linux

package onehost

import (
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
)

const lockdownFile = "/sys/kernel/security/lockdown"

// lockDown has the kernel protect itself from root, as with secure boot, and reports whether it can. That cannot be undone. A guest that is booted
// with lockdown=integrity would not load the module, which nobody has signed: it is loaded before.
func lockDown(t *testing.T, lt *lab.Test) bool {
	t.Helper()
	if lt.Run("a", "grep", "-q", "securityfs", "/proc/filesystems").Code != 0 {
		return false // the debug kernel has no security modules
	}
	lt.Must("a", "mountpoint -q /sys/kernel/security || mount -t securityfs none /sys/kernel/security")
	if lt.Run("a", "test", "-e", lockdownFile).Code != 0 {
		return false
	}
	// A fresh module has no hook left.
	lt.Must("a", "rmmod smc_diag smc; modprobe -a smc smc_diag; echo integrity >"+lockdownFile)
	return true
}

// rulesUnderLockdown has a rule make sockets SMC, for which the module installs its hook.
func rulesUnderLockdown(t *testing.T, lt *lab.Test) {
	t.Helper()
	const hooked = "grep -c security_socket_post_create /sys/kernel/tracing/enabled_functions || :"
	if n := lt.Must("a", hooked); strings.TrimSpace(n) != "0" {
		t.Errorf("the hook is there %s times before the first rule", n)
	}
	lt.Must("a", "smc_policy add smc")
	if n := lt.Must("a", hooked); strings.TrimSpace(n) != "1" {
		t.Errorf("the hook is there %s times", n)
	}
	sink := lt.Serve("a", "", "sink", "127.0.0.1:7998")
	r := lt.Run("a", "bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7998; smcss -p --state active --peer 127.0.0.1:7998")
	if !strings.Contains(r.Stdout, "SMCD users:((") {
		t.Errorf("the client is not SMC: %+v", r)
	}
	lab.Kill(t, sink)
	lt.Must("a", "smc_policy flush")
}

// notLoaded checks that the kernel now refuses the module.
func notLoaded(t *testing.T, lt *lab.Test) {
	t.Helper()
	if r := lt.Run("a", "modprobe", "smc"); r.Code == 0 || lt.Run("a", "test", "-e", "/sys/module/smc").Code == 0 {
		t.Errorf("the kernel loads a module that nobody has signed: %+v", r)
	}
}
