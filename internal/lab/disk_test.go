// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// TestSoftRoCE checks the udev rule and the packages that the lab takes from our guide.
func TestSoftRoCE(t *testing.T) {
	root, err := repository()
	if err != nil {
		t.Fatal(err)
	}
	name, rule, err := softRoCE(root)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".rules") || !strings.Contains(rule, "rdma link add rxe0 type rxe netdev eth0") || strings.Count(rule, "\n") != 1 {
		t.Errorf("%s: %q", name, rule)
	}
}

// TestDisk boots a Debian machine and reboots it. The machine keeps the files it has written and its identity, and is on the
// wire both times.
func TestDisk(t *testing.T) {
	Need(t)
	if !Full() {
		t.Skip("boots a Debian machine twice: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	need.Programs(t, "debootstrap", "mke2fs")
	disk := NewMachine(t, "bookworm").Disk()
	lt := Start(t, Options{Disk: disk, Hosts: 2})
	const stalls = "cat /sys/module/rcupdate/parameters/rcu_cpu_stall_timeout /proc/sys/kernel/watchdog_thresh"
	if got, want := lt.Must("a", stalls), fmt.Sprintf("%d\n%d\n", stallTimeout(), stallTimeout()/2); got != want {
		t.Errorf("stalls are reported after %q seconds, not %q", got, want)
	}
	identity := map[string]string{}
	for _, host := range []string{"a", "b"} {
		identity[host] = lt.Must(host, "hostname; cat /etc/machine-id; cat /proc/1/comm")
		if !strings.HasPrefix(identity[host], host+"\n") || !strings.HasSuffix(identity[host], "\nsystemd\n") {
			t.Errorf("host %s: %q", host, identity[host])
		}
	}
	if strings.TrimPrefix(identity["a"], "a") == strings.TrimPrefix(identity["b"], "b") {
		t.Errorf("both machines are %q", identity["a"])
	}
	lt.Must("a", "echo kept >/root/file; echo lost >/run/file")
	lt.Reboot("a")
	if got := lt.Must("a", "hostname; cat /etc/machine-id; cat /proc/1/comm"); got != identity["a"] {
		t.Errorf("after the reboot: %q, not %q", got, identity["a"])
	}
	if got := lt.Must("a", "cat /root/file; ls /run/file 2>/dev/null || :"); got != "kept\n" {
		t.Errorf("after the reboot: %q", got)
	}
	if err := lt.SetUpAddresses(t.Context()); err != nil {
		t.Fatal(err)
	}
	lt.Must("b", "timeout 60 bash -c ': >/dev/tcp/"+Addr4(0, 0)+"/9' 2>&1 | grep -q refused")
}
