// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestOurModules checks that a guest gets the modules that were built here, however they are loaded.
func TestOurModules(t *testing.T) {
	for _, series := range TestSeries() {
		t.Run(series, func(t *testing.T) {
			Need(t)
			if err := CheckModule(t.Context(), series, ModuleOurs, func(s string) { t.Log(s) }); err != nil {
				t.Fatal(err)
			}
			lt := Start(t, Options{Kernel: series})
			// TestLeaks has the debug kernel.
			if h := lt.Host("a"); !h.Kernel.Debug() {
				if _, err := h.Leaks(t.Context()); !errors.Is(err, errNoKmemleak) {
					t.Errorf("searching for leaks without kmemleak: %v", err)
				}
			}
			if err := lt.InstallSMC(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := lt.Must("a", "lsmod"); strings.Contains(got, "\nsmc") {
				t.Errorf("installing has loaded: %s", got)
			}
			// The kernel requests the modules by these aliases when a program opens, or lists, sockets of family 43.
			for alias, module := range map[string]string{"net-pf-43": "smc", "net-pf-16-proto-4-type-43": "smc_diag"} {
				want := "/updates/" + module + ".ko"
				if got := lt.Must("a", "modprobe --show-depends "+alias); !strings.Contains(got, want) {
					t.Errorf("%s stands for %q, not for %s", alias, got, want)
				}
			}
			if err := lt.LoadSMC(t.Context(), ModuleOurs); err != nil {
				t.Fatal(err)
			}
			lt.Must("a", "grep -q '^smc ' /proc/modules && grep -q '^smc_diag ' /proc/modules")
			// The kernel's other modules can still be loaded.
			lt.Must("a", "modprobe ib_core && modprobe dummy")
			lt.Must("a", "modprobe -r smc_diag && modprobe -r smc")
		})
	}
}

// leaky is a module that leaks the memory it allocates.
var leaky = map[string]string{
	"Kbuild": "obj-m := leaky.o\n",
	"leaky.c": `#include <linux/module.h>
#include <linux/slab.h>

static int __init lose(void)
{
	int i;

	for (i = 0; i < 8; i++)
		if (!kmalloc(8192, GFP_KERNEL))
			return -ENOMEM;
	return 0;
}
module_init(lose);
MODULE_DESCRIPTION("loses memory");
MODULE_LICENSE("Dual BSD/GPL");
`,
}

// TestLeaks makes a debug kernel leak memory, which the search must find. TestOurModules has the other kernels.
func TestLeaks(t *testing.T) {
	for _, series := range TestSeries() {
		t.Run(series, func(t *testing.T) {
			if series != DebugSeries {
				t.Skip("this kernel cannot search for leaks")
			}
			lt := Start(t, Options{Kernel: series})
			h := lt.Host("a")
			_, r, err := provisionBuild(t.Context(), series, func(s string) { t.Log(s) })
			if err != nil {
				t.Fatal(err)
			}
			work := write(t, leaky)
			if out, err := r.make(t.Context(), work, "modules"); err != nil {
				t.Fatal(err, out)
			}
			data, err := os.ReadFile(filepath.Join(work, "leaky.ko"))
			if err != nil {
				t.Fatal(err)
			}
			if err := h.WriteFile(t.Context(), "/run/leaky.ko", data, 0o644); err != nil {
				t.Fatal(err)
			}
			lt.Must("a", "insmod /run/leaky.ko")
			found, err := h.Leaks(t.Context())
			if err != nil || !slices.ContainsFunc(found, func(l string) bool { return strings.Contains(l, "(size 8192)") }) {
				t.Errorf("found %q, %v", found, err)
			}
			lt.Allow(regexp.MustCompile(`\(size 8192\)`), regexp.MustCompile(`kmemleak: \d+ new suspected`))
		})
	}
}
