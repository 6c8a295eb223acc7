// SPDX-License-Identifier: Apache-2.0

package smcconf

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/conf"
	"github.com/smckit/smckit/pkg/policy"
)

// withRules returns a harness whose kernel has rules, and a file that has others.
func withRules(t *testing.T, file string, rules ...string) *harness {
	t.Helper()
	h := newHarness(t)
	var list []policy.Rule
	for _, text := range rules {
		r, err := policy.Parse(strings.Fields(text), policy.SystemNames{})
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	if err := h.rules.SetRules(t.Context(), 0, list); err != nil {
		t.Fatal(err)
	}
	h.files("", "", "")
	h.write(filepath.Join(h.dir, conf.PolicyFile), file)
	return h
}

// TestApplyRules applies rules, of which one stays with its number. Control groups need not exist.
func TestApplyRules(t *testing.T) {
	h := withRules(t, "# rules\ntcp to 10.0.0.0/8\nsmc port 2 # stays\nsmc cgroup no.slice/such.service\n", "smc port 1", "smc port 2")
	const changes = "policy: deleted smc port 1\npolicy: added tcp to 10.0.0.0/8\npolicy: added smc cgroup no.slice/such.service\n"
	const diff = "policy.conf: -smc port 1\npolicy.conf: +tcp to 10.0.0.0/8\npolicy.conf: +smc cgroup no.slice/such.service\n"
	h.expect(0, diff, "", "apply", "--check", "--diff", "@")
	h.expect(0, changes, "", "apply", "@")
	if got := h.rules.text(); got != "tcp to 10.0.0.0/8\nsmc port 2\nsmc cgroup no.slice/such.service\n" || h.rules.policy.Rules[1].ID != 2 {
		t.Errorf("%s%+v", got, h.rules.policy)
	}
	h.expect(0, "", "", "apply", "@")
	// Nothing in the file: the kernel's rules stay.
	h.write(filepath.Join(h.dir, conf.PolicyFile), "# nothing\n")
	h.expect(0, "", "", "apply", "@")
	if len(h.rules.policy.Rules) != 3 {
		t.Errorf("%+v", h.rules.policy)
	}
}

// TestApplyRulesRefused has a kernel that refuses rules: what was changed before is undone. Another module has none: they are left out.
func TestApplyRulesRefused(t *testing.T) {
	h := withRules(t, "smc\n", "tcp")
	h.files("add NET1 eth eth0\n", "", "rmem = 131072\n")
	before := h.state()
	h.rules.fail = errors.New("refused")
	h.expect(1, "", "smc_conf: refused; the changes before it were undone\n", "apply", "@")
	if after := h.state(); after != before || h.rules.text() != "tcp\n" {
		t.Errorf("%s became %s, rules %s", before, after, h.rules.text())
	}
	h.rules = nil
	h.expect(0, "smc: set rmem to 131072 (from 65536)\npnet: added NET1 eth eth0\n",
		"smc_conf: warning: DIR/policy.conf is left out: only smckit's module has a policy\n", "apply", "@")
	h.write(filepath.Join(h.dir, conf.PolicyFile), "smc\nsmc port x\n")
	h.expect(1, "", "smc_conf: DIR/policy.conf:2: word 3: port \"x\": ports are numbers from 1 to 65535, ranges of them, and lists: "+
		"6379,8000-8100\n", "apply", "@")
}

// TestSaveRules saves the kernel's rules: comments stay with their rules.
func TestSaveRules(t *testing.T) {
	h := withRules(t, "# the file\n\n# first\nsmc port 1\n# gone\nsmc port 9\n# second\nsmc port 2 # end\n# last\n",
		"smc port 2", "tcp", "smc port 1")
	h.expect(0, "wrote DIR/policy.conf\n", "", "save", "@")
	const want = "# the file\n\n# last\n# second\nsmc port 2 # end\ntcp\n# first\nsmc port 1\n"
	text, err := os.ReadFile(filepath.Join(h.dir, conf.PolicyFile))
	if err != nil || string(text) != want {
		t.Errorf("%s%v", text, err)
	}
	h.expect(0, "", "", "save", "@")
	h.expect(0, "", "", "apply", "@")
	h.rules = nil
	h.expect(0, "", "", "save", "@")
}
