// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/conf"
)

const units = "packaging/systemd/"

// TestUnits checks our units with systemd.
func TestUnits(t *testing.T) {
	// 250 is the first version that rates the security of a unit in a file.
	version, err := exec.Command("systemd-analyze", "--version").Output()
	if err != nil {
		t.Skipf("no systemd to ask: %v", err)
	}
	if m := regexp.MustCompile(`^systemd (\d+)`).FindSubmatch(version); m == nil || len(m[1]) < 3 || string(m[1]) < "250" {
		t.Skipf("this systemd is too old to ask: %.40s", version)
	}
	// The files that the units refer to are in a root directory, so that this machine's files do not matter.
	root := t.TempDir()
	put := func(path string, data []byte, perm os.FileMode) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, perm); err != nil {
			t.Fatal(err)
		}
	}
	for _, program := range []string{"smc_conf", "smc_ismd", "systemctl"} {
		put("usr/bin/"+program, nil, 0o755)
	}
	for _, target := range []string{"basic", "sysinit", "shutdown", "network-online"} {
		put("usr/lib/systemd/system/"+target+".target", []byte("[Unit]\nDefaultDependencies=no\n"), 0o644)
	}
	put("usr/lib/systemd/system/modprobe@.service", []byte("[Service]\nType=oneshot\nExecStart=/usr/bin/systemctl\n"), 0o644)
	for _, unit := range []string{"smc.service", "smc-device@.service", "smc-ismd.service"} {
		put("usr/lib/systemd/system/"+unit, read(t, units+unit), 0o644)
	}
	out, err := exec.Command("systemd-analyze", "--root="+root, "--man=no", "verify", "smc.service", "smc-device@x.service", "smc-ismd.service").CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	// A service that reaches a limit of starts fails, and systemd drops the files that it keeps for it.
	if unit := string(read(t, units+"smc-ismd.service")); !regexp.MustCompile(`(?ms)^\[Unit\].*^StartLimitIntervalSec=0$.*^\[Service\].*^RestartSec=2s$`).MatchString(unit) {
		t.Error("smc-ismd.service may fail, and then loses its fabrics")
	}
	// The exposure that systemd computes for a service, in tenths: from 0 to 100.
	for _, unit := range []string{"smc.service", "smc-ismd.service"} {
		out, err = exec.Command("systemd-analyze", "--root="+root, "--offline=yes", "--threshold=20", "security", unit).CombinedOutput()
		if err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestUdevRules checks our rules with udev, if its version can do this, and the programs that the rules refer to.
func TestUdevRules(t *testing.T) {
	const file = "packaging/udev/60-smc.rules"
	rules := string(read(t, file))
	wants := regexp.MustCompile(`ENV\{SYSTEMD_WANTS\}\+="([^"]+)"`).FindAllStringSubmatch(rules, -1)
	if len(wants) == 0 {
		t.Error("no rule starts anything")
	}
	for _, m := range wants {
		if read(t, units+m[1]) == nil {
			t.Errorf("%s starts %s, which is not in %s", file, m[1], units)
		}
	}
	grep := regexp.MustCompile(`PROGRAM=="([^" ]+ [^" ]+) \$(name|id|kernel) (/etc/smc/[^"]+)"`)
	programs := grep.FindAllStringSubmatch(rules, -1)
	if len(programs) != len(wants) {
		t.Errorf("%d rules that start something, %d that look into a file", len(wants), len(programs))
	}
	for _, m := range programs {
		if m[3] != conf.Dir+"/"+conf.PNETFile {
			t.Errorf("%s is not the file of the PNET table", m[3])
		}
		for name, want := range map[string]bool{"eth4": true, "mlx5_0": true, "et": false, "eth41": false, "0000:00:1f.0": true, "0000:00:1f": true, "..": false} {
			argv := append(strings.Fields(m[1]), name)
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Stdin = strings.NewReader("add NET1 eth eth4\nadd NET1 ib mlx5_0 1\nadd NET1 ib 0000:00:1f.0\n")
			if got := cmd.Run() == nil; got != want {
				t.Errorf("%q: %v", argv, got)
			}
		}
	}
	if err := exec.Command("udevadm", "verify", "--help").Run(); err != nil {
		t.Logf("no udevadm that verifies: %v", err)
		return
	}
	if out, err := exec.Command("udevadm", "verify", filepath.Join("..", file)).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// lines returns the lines of a file that have content, including commented-out settings.
func lines(t *testing.T, file, pattern string) []string {
	t.Helper()
	var out []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(read(t, file)), -1) {
		out = append(out, m[1])
	}
	if len(out) == 0 {
		t.Errorf("%s says nothing", file)
	}
	return out
}

// TestModuleFiles checks that files for the modules name existing modules.
func TestModuleFiles(t *testing.T) {
	if got := lines(t, "packaging/modules-load.d/smckit.conf", `(?m)^([a-z_]+)$`); !slices.Equal(got, []string{"smc", "smc_diag"}) {
		t.Errorf("modules %q", got)
	}
	var sources strings.Builder
	for _, file := range repoFiles(t) {
		// null.o is not part of the module.
		if strings.HasPrefix(file, "kernel/transport/") && strings.HasSuffix(file, ".c") {
			sources.Write(read(t, file))
		}
	}
	for _, option := range lines(t, "packaging/modprobe.d/smckit.conf", `(?m)^# options smc (\w+)=[01]$`) {
		if !strings.Contains(sources.String(), "module_param("+option+", bool, 0444)") {
			t.Errorf("the module has no option %s", option)
		}
	}
	for _, name := range lines(t, "packaging/sysctl.d/60-smckit.conf", `(?m)^# -net\.smc\.(\w+) = \d+$`) {
		if _, ok := conf.Find(name); !ok {
			t.Errorf("there is no setting net.smc.%s", name)
		}
	}
}
