// SPDX-License-Identifier: Apache-2.0

package smcrd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLoopback walks through the states of the setting.
func TestLoopback(t *testing.T) {
	file := filepath.Join(t.TempDir(), "loopback")
	if err := os.WriteFile(file, []byte("2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, stdout, value string }{
		{"loopback", "SMC-D loopback: on\n", "2"},
		{"loopback show --json=1", "{\n  \"schema\": 1,\n  \"loopback\": {\n    \"connections\": \"on\"\n  }\n}\n", "2"},
		{"loopback on", "SMC-D loopback is already on\n", "2"},
		{"loopback off", "", "0"},
		{"loopback", "SMC-D loopback: off\n", "0"},
		{"loop namespace --json=1", "{\n  \"schema\": 1,\n  \"changed\": true\n}\n", "1"},
		{"loop n --json=1", "{\n  \"schema\": 1,\n  \"changed\": false\n}\n", "1"},
		{"loopback show", "SMC-D loopback: within the network namespace\n", "1"},
		{"loopback on", "", "2"},
	} {
		b := &bench{loopback: file}
		got := b.run(techD, strings.Fields(c.args)...)
		if diff := cmp.Diff(result{stdout: c.stdout}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.args, diff)
		}
		if value, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(value)) != c.value {
			t.Errorf("%s: the setting is %q, %v; want %s", c.args, value, err, c.value)
		}
		if b.opened != 0 {
			t.Errorf("%s: uses netlink", c.args)
		}
	}
}

// TestLoopbackErrors checks that each failure is one line that says what to do.
func TestLoopbackErrors(t *testing.T) {
	dir := t.TempDir()
	strange := filepath.Join(dir, "strange")
	if err := os.WriteFile(strange, []byte("3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		file, args, stderr string
		status             int
	}{
		{
			filepath.Join(dir, "smc", "loopback"), "loopback",
			"smcd: read net.smc.loopback: SMC module not available: load it with 'modprobe smc'\n", 1,
		},
		{
			filepath.Join(dir, "loopback"), "loopback off",
			"smcd: read net.smc.loopback: the loaded SMC module has no such setting (no such file or directory): install smckit's module (package smckit-dkms)\n", 1,
		},
		{
			strange, "loopback",
			"smcd: read net.smc.loopback: \"3\" is an unknown value: use the version of this command that belongs to the module\n", 1,
		},
		{strange, "loopback 1", "smcd: \"1\" is not one of show, off, namespace, on; see 'smcd loopback --help'\n", 2},
		{strange, "loopback on off", "smcd: \"off\" is an unexpected word; see 'smcd loopback --help'\n", 2},
	} {
		got := (&bench{loopback: c.file}).run(techD, strings.Fields(c.args)...)
		if diff := cmp.Diff(result{stderr: c.stderr, status: c.status}, got, cmp.AllowUnexported(result{})); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", c.args, c.file, diff)
		}
	}
	if got := (&bench{}).run(techR, "loopback"); got.status != 2 || !strings.Contains(got.stderr, "use 'smcd loopback'") {
		t.Errorf("smcr: %+v", got)
	}
}

// TestLoopbackPermission checks the message for users who may not change the setting.
func TestLoopbackPermission(t *testing.T) {
	if err := loopbackError("set", loopbackFile, &os.PathError{Op: "open", Path: loopbackFile, Err: os.ErrPermission}); err.Error() !=
		"set net.smc.loopback: permission denied: run as root, or with CAP_NET_ADMIN in the user namespace that owns the network namespace" {
		t.Error(err)
	}
}
