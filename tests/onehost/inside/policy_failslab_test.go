// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"testing"

	"github.com/smckit/smckit/pkg/policy"
	"github.com/smckit/smckit/tests/guest"
)

// TestRulesFailingAllocations makes one allocation after the other fail while rules replace others, and while rules decide about the
// two sockets of a connection. A connection may fail or be TCP. The rules are the old or the new ones.
func TestRulesFailingAllocations(t *testing.T) {
	needRules(t)
	guest.NeedFailslab(t)
	old := []string{"smc port 6379 from 127.0.0.0/8,::1/128", "auto port 6379", "tcp cgroup other"}
	fresh := append([]string{"tcp port 1-5,7 to 10.0.0.0/8"}, old...)
	setRules(t, old...)
	t.Run("rules", func(t *testing.T) {
		guest.FailEachThen(t, func() error { return tryRules(fresh...) }, func() {
			if n := len(counters(t)); n != len(old) && n != len(fresh) {
				t.Errorf("%d rules", n)
			}
			if err := tryRules(old...); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("sockets", func(t *testing.T) {
		guest.FailEach(t, func() error {
			return withSignalsBlocked(func() error {
				return withConnection(service, func(c, s int) error { return errors.Join(transfer(c, s, 20_000), transfer(s, c, 20_000)) })
			})
		})
	})
	// The client's service has learned that SMC does not pay.
	if err := withPolicy(func(c *policy.Client, _ policy.Policy) error { return c.FlushServices(t.Context()) }); err != nil {
		t.Fatal(err)
	}
	if c, s := exchange(t, service, 0); c != "SMC" || s != "SMC" {
		t.Errorf("with memory: %q, %q", c, s)
	}
}
