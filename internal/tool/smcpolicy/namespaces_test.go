// SPDX-License-Identifier: Apache-2.0

package smcpolicy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNamespaces(t *testing.T) {
	h := newHarness(t)
	h.sys.settings = t.TempDir()
	file := filepath.Join(h.sys.settings, policyForNamespaces)
	const op = "smc_policy: have network namespaces use the rules of the host: net.smc.policy_for_namespaces: "
	h.expect(1, "", op+"there is no such setting: install smckit's module (package smckit-dkms)\n", "namespaces", "on")
	if err := os.WriteFile(filepath.Join(h.sys.settings, namespaceCeiling), []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.expect(1, "", op+"only the initial network namespace has the rules for others: run the command there\n", "namespaces", "on")
	if err := os.WriteFile(file, []byte("0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const off, on = "off: each network namespace has only its own rules\n", "on: network namespaces without rules use those of the initial one\n"
	for _, tt := range []struct{ args, out, value string }{
		{"", off, "0"},
		{"off", "unchanged\n", "0"},
		{"off --check", "unchanged\n", "0"},
		{"on --check", "would have network namespaces without rules use those of the initial one\n", "0"},
		{"on", "", "1"},
		{"off --check", "would leave each network namespace only its own rules\n", "1"},
		{"on", "unchanged\n", "1"},
		{"", on, "1"},
		{"--json=1", "{\n  \"schema\": 1,\n  \"changed\": false,\n  \"check\": false,\n  \"enabled\": true\n}\n", "1"},
		{"off --json=1", "{\n  \"schema\": 1,\n  \"changed\": true,\n  \"check\": false,\n  \"enabled\": false\n}\n", "0"},
	} {
		h.expect(0, tt.out, "", append([]string{"namespaces"}, strings.Fields(tt.args)...)...)
		if got, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(got)) != tt.value {
			t.Errorf("%s: the setting is %q, want %s, %v", tt.args, got, tt.value, err)
		}
	}
	for _, bad := range []string{"maybe", "on off", "--check"} {
		if status := h.run(append([]string{"namespaces"}, strings.Fields(bad)...)...); status != 2 {
			t.Errorf("%s: status %d, %s", bad, status, h.err.String())
		}
	}
}

// TestInherited is about a namespace for which the rules of another one decide.
func TestInherited(t *testing.T) {
	h := newHarness(t)
	h.kernel.policy.Inherited = true
	h.expect(0, "There are no rules. Those of the initial network namespace decide.\n", "", "show")
	h.expect(1, "", "smc_policy: the rules of the initial network namespace decide, which this one cannot read: run 'smc_policy explain' there\n",
		"explain", ":6379")
}
