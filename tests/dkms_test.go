// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// dkmsConf returns the assignments of kernel/dkms.conf.
func dkmsConf(t *testing.T) map[string]string {
	t.Helper()
	conf := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^([A-Z_]+(?:\[\d\])?)="(.*)"$`).FindAllStringSubmatch(string(read(t, "kernel/dkms.conf")), -1) {
		conf[m[1]] = m[2]
	}
	return conf
}

// TestModuleVersions checks that the modules, and the package that DKMS builds them from, have the suite's version.
func TestModuleVersions(t *testing.T) {
	if got := dkmsConf(t)["PACKAGE_VERSION"]; got != version.Version {
		t.Errorf("kernel/dkms.conf has version %q, internal/version %q", got, version.Version)
	}
	// Kbuild hands the sources the version of dkms.conf.
	kbuild := string(read(t, "kernel/Kbuild"))
	for _, line := range []string{`PACKAGE_VERSION="\(.*\)"`, `-DSMC_MODULE_VERSION='"$(SMC_MODULE_VERSION)"'`} {
		if !strings.Contains(kbuild, line) {
			t.Errorf("kernel/Kbuild is without %s", line)
		}
	}
	var found []string
	for _, file := range repoFiles(t) {
		if !strings.HasPrefix(file, "kernel/") || !strings.HasSuffix(file, ".c") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?m)^MODULE_VERSION\((.*)\);`).FindAllStringSubmatch(string(read(t, file)), -1) {
			found = append(found, m[1])
		}
	}
	if diff := cmp.Diff([]string{"SMC_MODULE_VERSION", "SMC_MODULE_VERSION"}, found); diff != "" {
		t.Errorf("versions of the modules: %s", diff)
	}
}

// TestDKMSSourcesWhereTheNameHasABlank installs the sources below a name with a blank and removes them, but not the file
// whose name is the part before the blank.
func TestDKMSSourcesWhereTheNameHasABlank(t *testing.T) {
	need.Programs(t, "make")
	dir := t.TempDir()
	bystander := filepath.Join(dir, "a", "file")
	put(t, dir, "a/file", nil, 0o644)
	destination := filepath.Join(dir, "a b")
	for _, c := range []struct {
		target string
		there  bool
	}{{"dkms-install", true}, {"dkms-install", true}, {"dkms-uninstall", false}} {
		out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "..", c.target, "DESTDIR="+destination).CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found, err := filepath.Glob(destination + "/usr/src/smckit-*/dkms.conf")
		if err != nil || (len(found) == 1) != c.there {
			t.Errorf("%s: %v, %v", c.target, found, err)
		}
		if _, err := os.Stat(bystander); err != nil {
			t.Error(err)
		}
	}
}

func TestDKMS(t *testing.T) {
	conf := dkmsConf(t)
	got := []string{conf["BUILT_MODULE_NAME[0]"], conf["BUILT_MODULE_NAME[1]"]}
	if diff := cmp.Diff([]string{"smc", "smc_diag"}, got); diff != "" {
		t.Error(diff)
	}
	for _, i := range []string{"[0]", "[1]"} {
		if got := conf["DEST_MODULE_LOCATION"+i]; got != "/updates/dkms" {
			t.Errorf("module %s goes to %q", i, got)
		}
	}
	exclusive := regexp.MustCompile(conf["BUILD_EXCLUSIVE_KERNEL"])
	for release, want := range map[string]bool{
		"6.1.0-50-amd64": true, "6.1.176": true, "6.12.107+deb13-amd64": true, "7.2.13+deb14-amd64": true, "7.2.13-smckit-debug": true,
		"7.10.0-1-amd64": true, "6.12-rc1": true, "5.10.0-30-amd64": false, "6.10.3": false, "6.11.2": false, "6.13.1": false,
		"6.120.1": false, "8.0.1": false, "16.1.0": false,
	} {
		if exclusive.MatchString(release) != want {
			t.Errorf("kernel %s: built for it: %v", release, !want)
		}
	}
}
