// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"context"
	"fmt"
	"testing"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/guest"
)

// TestRulesOfNamespaces has rules in another network namespace, which are not for sockets here.
func TestRulesOfNamespaces(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 1")
	guest.Run(t, "ip netns add ruled && ip -n ruled link set lo up")
	t.Cleanup(func() { guest.Run(t, "ip netns del ruled") })
	err := guest.InNamespace("ruled", func() error {
		if err := tryRules("smc"); err != nil {
			return err
		}
		if err := oneExchange(service); err != nil {
			return err
		}
		return withPolicy(func(_ *policy.Client, now policy.Policy) error {
			if len(now.Rules) != 1 || now.Rules[0].Counters.SMC != 2 {
				return fmt.Errorf("the namespace has %+v", now)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
	if c, s := exchange(t, service, 0); c != "" || s != "" {
		t.Errorf("sockets here: %q, %q", c, s)
	}
}

// TestRulesForNamespaces has the rules of this namespace decide in another one, also about a program that runs there already, as long as that
// one has no rules of its own.
func TestRulesForNamespaces(t *testing.T) {
	needRules(t)
	setRules(t, "smc port 6379")
	guest.Run(t, "ip netns add ruled && ip -n ruled link set lo up")
	t.Cleanup(func() { guest.Run(t, "ip netns del ruled; sysctl -qw net.smc.policy_for_namespaces=0") })
	expect := func(what string, smc, inherited bool) {
		t.Helper()
		before := counters(t)[0].SMC
		err := guest.InNamespace("ruled", func() error {
			if err := oneExchange(service); err != nil {
				return err
			}
			return withPolicy(func(_ *policy.Client, now policy.Policy) error {
				if now.Inherited != inherited {
					return fmt.Errorf("the namespace has %+v", now)
				}
				return nil
			})
		})
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if n := counters(t)[0].SMC - before; (n == 2) != smc || (n == 0) == smc {
			t.Errorf("%s: %d ends are SMC by the rule", what, n)
		}
	}
	setOther := func(texts ...string) {
		t.Helper()
		if err := guest.InNamespace("ruled", func() error { return tryRules(texts...) }); err != nil {
			t.Fatal(err)
		}
	}
	switchAll := func(on bool) {
		t.Helper()
		err := withPolicy(func(c *policy.Client, now policy.Policy) error {
			return c.Enable(context.Background(), now.Generation, on)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect("not allowed", false, false)
	guest.Run(t, "sysctl -qw net.smc.policy_for_namespaces=1")
	expect("allowed", true, true)
	setOther("tcp port 6379")
	expect("with a rule of its own", false, false)
	setOther()
	expect("without it", true, true)
	switchAll(false)
	expect("off", false, true)
	switchAll(true)
	expect("on", true, true)
	if c, s := exchange(t, service, 0); c != "SMC" || s != "SMC" {
		t.Errorf("sockets here: %q, %q", c, s)
	}
	guest.Run(t, "sysctl -qw net.smc.policy_for_namespaces=0")
	expect("forbidden", false, false)
}
