// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/smckit/smckit/pkg/policy"
)

func TestMemory(t *testing.T) {
	h := newHarness(t)
	h.kernel.memory.Namespace = policy.Pool{Limit: 64 << 20, Reserved: 3 << 20, Peak: 64 << 20, RMB: 1 << 20, DMB: 2 << 20, Refused: 7}
	h.expect(0, `                   Namespace
Ceiling            64M
Reserved           3M
Highest            64M
RMBs               1M
Send rings         0
DMBs               2M
Ends that are TCP  7
`, "", "memory")
	h.kernel.memory.Host = &policy.Pool{Reserved: 3<<20 + 3072 + 100, Peak: 1 << 30, RMB: 1 << 20, DMB: 2 << 20, Queues: 3072 + 100, Idle: 48 << 10, Refused: 9}
	h.expect(0, `                   Namespace  Host
Ceiling            64M        none
Reserved           3M         3076K
Highest            64M        1G
RMBs               1M         1M
Send rings         0          0
DMBs               2M         2M
Queues of links    -          4K
Idle buffers       -          48K
Ends that are TCP  7          9
`, "", "memory")
	h.kernel.memory.Host = &policy.Pool{Limit: 1 << 40}
	h.expect(0, `{
  "schema": 1,
  "namespace": {
    "ceiling": 67108864,
    "reserved": 3145728,
    "highest": 67108864,
    "rmbs": 1048576,
    "send_rings": 0,
    "dmbs": 2097152,
    "refused": 7
  },
  "host": {
    "ceiling": 1099511627776,
    "reserved": 0,
    "highest": 0,
    "rmbs": 0,
    "send_rings": 0,
    "dmbs": 0,
    "queues": 0,
    "idle": 0,
    "refused": 0
  }
}
`, "", "memory", "--json=1")
}

func TestMemoryCeilingOfHost(t *testing.T) {
	c := command{sys: system{settings: t.TempDir()}}
	const want = "set the ceiling: net.smc.max_memory_kbytes: in a user namespace, the ceiling can only be lowered: run the command on the host"
	err := c.settingError(setting{name: namespaceCeiling, op: "set the ceiling"}, &fs.PathError{Op: "write", Path: "x", Err: syscall.EPERM})
	if err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestMemoryCeiling(t *testing.T) {
	h := newHarness(t)
	h.sys.settings = t.TempDir()
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(h.sys.settings, name), []byte("0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const remedy = "there is no such setting: install smckit's module (package smckit-dkms)\n"
	h.expect(1, "", "smc_policy: set the ceiling: net.smc.max_memory_kbytes: "+remedy, "memory", "1M")
	write(namespaceCeiling)
	h.expect(1, "", "smc_policy: set the ceiling: net.smc.host_max_memory_kbytes: only the initial network namespace has the ceiling of the host: "+
		"run the command there\n", "memory", "--host", "1M")
	write(hostCeiling)
	h.kernel.memory.Host = &policy.Pool{Limit: 48 << 20}
	for _, tt := range []struct{ args, out, namespace, host string }{
		{"64M", "", "65536", "0"},
		{"64m", "unchanged\n", "65536", "0"},
		{"64m --check", "unchanged\n", "65536", "0"},
		{"1G --check", "would set the ceiling to 1G\n", "65536", "0"},
		{"--host none --check --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": true,\n  \"ceiling\": 0\n}\n", "65536", "0"},
		{"--host 2G", "", "65536", "2097152"},
		{"--host default --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"ceiling\": 50331648\n}\n", "65536", "0"},
		{"--host none --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"ceiling\": 0\n}\n", "65536", "4294967295"},
		{"--host 4095G", "", "65536", "4293918720"},
		{"none --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"ceiling\": 0\n}\n", "0", "4293918720"},
		{"1K --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"ceiling\": 1024\n}\n", "1", "4293918720"},
	} {
		h.expect(0, tt.out, "", append([]string{"memory"}, strings.Fields(tt.args)...)...)
		for name, want := range map[string]string{namespaceCeiling: tt.namespace, hostCeiling: tt.host} {
			if got, err := os.ReadFile(filepath.Join(h.sys.settings, name)); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s: %s is %q, want %s, %v", tt.args, name, got, want, err)
			}
		}
	}
	for _, bad := range []string{"64", "0", "0M", "M", "-1M", "1.5G", "4096G", "4194304M", "4294967295K", "99999999999999999999K", "1T", "1 M", "--host", "--check"} {
		if status := h.run("memory", bad); status != 2 {
			t.Errorf("%s: status %d, %s", bad, status, h.err.String())
		}
	}
}
