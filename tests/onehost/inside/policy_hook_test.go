// SPDX-License-Identifier: Apache-2.0

//go:build linux

package inside

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/smckit/smckit/tests/guest"
	"golang.org/x/sys/unix"
)

// tracedFunctions has the functions of the kernel that are traced.
const tracedFunctions = "/sys/kernel/tracing/enabled_functions"

// hooked waits until the kernel has the hook of socket creation, or has it no more.
func hooked(t *testing.T, want bool) {
	t.Helper()
	guest.Await(t, 60*time.Second, func() string {
		data, err := os.ReadFile(tracedFunctions)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "security_socket_post_create") != want {
			return "the hook is there: " + map[bool]string{true: "no", false: "yes"}[want]
		}
		return ""
	})
}

// TestRulesHook has the hook come and go with the rules that need it while connections begin and end, also after the kernel has refused it,
// because tracing was off. While it is there, tracing cannot be switched off.
func TestRulesHook(t *testing.T) {
	needRules(t)
	if _, err := os.Stat(tracedFunctions); err != nil {
		t.Skip("this kernel has no function tracer")
	}
	trace := func(value string) error { return os.WriteFile("/proc/sys/kernel/ftrace_enabled", []byte(value), 0) }
	t.Cleanup(func() {
		if err := errors.Join(tryRules(), trace("1")); err != nil {
			t.Error(err)
		}
	})
	underLoad(t, func() {
		for range length(2, 40) {
			hookComesAndGoes(t, trace)
		}
	})
}

func hookComesAndGoes(t *testing.T, trace func(value string) error) {
	setRules(t, "smc port 6379", "smc port 6400-6401")
	hooked(t, true)
	if c, s := exchange(t, service, 0); c != "SMC" || s != "SMC" {
		t.Errorf("%q, %q", c, s)
	}
	if err := trace("0"); !errors.Is(err, unix.EBUSY) {
		t.Errorf("tracing off beside the hook: %v", err)
	}
	setRules(t)
	hooked(t, false)
	if err := trace("0"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := tryRules("smc port 6379"); !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "kernel.ftrace_enabled") {
			t.Errorf("a rule without tracing: %v", err)
		}
	}
	if err := trace("1"); err != nil {
		t.Fatal(err)
	}
}
