// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/smckit/smckit/pkg/policy"
)

// hooked is the function of the kernel that the module traces while there are rules by which sockets become SMC.
const hooked = "security_socket_post_create"

// setRule makes a rule the policy, or deletes all if it is empty, and waits until the module has its hook, or has it no more.
func setRule(text string) error {
	var rules []policy.Rule
	if text != "" {
		r, err := policy.Parse(strings.Fields(text), policy.SystemNames{})
		if err != nil {
			return err
		}
		rules = append(rules, r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c, err := policy.NewContext(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	now, err := c.Get(ctx)
	if err != nil {
		return err
	}
	if len(now.Rules) == 0 && len(rules) == 0 {
		return nil
	}
	if err := c.SetRules(ctx, now.Generation, rules); err != nil {
		return err
	}
	for {
		traced, err := os.ReadFile("/sys/kernel/tracing/enabled_functions")
		if err != nil {
			return err
		}
		if strings.Contains(string(traced), hooked) == (len(rules) > 0) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the hook of %s: %w", hooked, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
