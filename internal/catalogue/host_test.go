// SPDX-License-Identifier: Apache-2.0

package catalogue

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/rootdir"
	"github.com/smckit/smckit/internal/sysfstest"
)

// TestReadKernel reads which modules the kernel accepts.
func TestReadKernel(t *testing.T) {
	for _, tt := range []struct {
		files map[string]string
		want  Kernel
	}{
		{map[string]string{}, Kernel{}},
		{map[string]string{"proc/sys/kernel/osrelease": "7.2\n", "proc/sys/kernel/modules_disabled": "0\n"}, Kernel{Release: "7.2"}},
		{map[string]string{"proc/sys/kernel/modules_disabled": "1\n"}, Kernel{ModulesDisabled: true}},
		{map[string]string{"sys/module/module/parameters/sig_enforce": "Y\n"}, Kernel{SignaturesForced: true}},
		{map[string]string{"sys/kernel/security/lockdown": "none [integrity] confidentiality\n"}, Kernel{SignaturesForced: true}},
		{map[string]string{"sys/kernel/security/lockdown": "[none] integrity confidentiality\n"}, Kernel{}},
	} {
		if diff := cmp.Diff(tt.want, files{rootdir.Dir(sysfstest.Files(t, tt.files))}.readKernel()); diff != "" {
			t.Errorf("%q: %s", tt.files, diff)
		}
	}
}

// TestReadModule reads which module is loaded, and which is installed.
func TestReadModule(t *testing.T) {
	const dir = "lib/modules/7.2/"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  Module
	}{
		{"nothing", map[string]string{}, Module{}},
		{"built in", map[string]string{
			dir + "modules.builtin": "kernel/net/ipv4/x.ko\nkernel/net/smc/smc.ko\n", "sys/module/smc/uevent": "",
		}, Module{Loaded: true, BuiltIn: true}},
		{"ours", map[string]string{
			"sys/module/smc/version": "0.1\n", "sys/module/smc/srcversion": "AB\n", "sys/module/smc/taint": "OE\n",
			"sys/module/smc/parameters/smcr": "Y\n", "sys/module/smc/parameters/smcd": "N\n",
			dir + "modules.dep": "kernel/net/smc/smc_diag.ko: x\nupdates/smc.ko: kernel/ib_core.ko\n",
		}, Module{Loaded: true, Ours: true, Version: "0.1", SrcVersion: "AB", Taint: "OE", SMCR: new(true), SMCD: new(false), File: "ROOT/" + dir + "updates/smc.ko"}},
		{"installed, compressed, and blocked", map[string]string{
			dir + "modules.dep":              "kernel/net/smc/smc.ko.xz:\n",
			dir + "kernel/net/smc/smc.ko.xz": "not an ELF file",
			"etc/modprobe.d/a.conf":          "# blacklist smc\nblacklist smc_diag\noptions smc smcr=0\nblacklist smc\n",
		}, Module{File: "ROOT/" + dir + "kernel/net/smc/smc.ko.xz", Blocked: "'blacklist smc' in ROOT/etc/modprobe.d/a.conf"}},
		{
			"installed as false",
			map[string]string{"usr/lib/modprobe.d/x.conf": "install smc /bin/false\n"},
			Module{Blocked: "'install smc /bin/false' in ROOT/usr/lib/modprobe.d/x.conf"},
		},
		{"installed by a command", map[string]string{"etc/modprobe.d/x.conf": "install smc /sbin/modprobe -i smc\n"}, Module{}},
		{
			"the family has no module",
			map[string]string{"etc/modprobe.d/x.conf": "alias net-pf-43 off\n"},
			Module{Blocked: "'alias net-pf-43 off' in ROOT/etc/modprobe.d/x.conf"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := files{rootdir.Dir(sysfstest.Files(t, tt.files))}
			for _, s := range []*string{&tt.want.File, &tt.want.Blocked} {
				*s = strings.Replace(*s, "ROOT", string(r.Dir), 1)
			}
			if diff := cmp.Diff(tt.want, r.readModule("7.2")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestModinfo(t *testing.T) {
	section := []byte("license=GPL\x00srcversion=AB\x00\x00vermagic=7.2 SMP mod_unload \x00name=smc\x00")
	for key, want := range map[string]string{"vermagic": "7.2 SMP mod_unload ", "srcversion": "AB", "license": "GPL", "alias": ""} {
		if got := modinfo(section, key); got != want {
			t.Errorf("%s: %q", key, got)
		}
	}
}
