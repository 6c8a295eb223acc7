// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestISMRole has the role for KVM hosts write fabrics and run the service: it predicts the changes, makes them once, restarts
// the service when the fabrics change, and refuses mistakes before it changes anything.
func TestISMRole(t *testing.T) {
	m := newMachine(t)
	// The role checks the fabrics by the command itself.
	build(t, m.fake, "smc_ismd")
	const service = "smc-ismd.service"
	play := func(fabrics string, args ...string) (recap, string) {
		t.Helper()
		vars := `{"ism_fabrics": [` + fabrics + `], "ism_file": "` + filepath.Join(m.etc, "ism.conf") + `"}`
		return m.playbook("ism.yml", append([]string{"-e", vars}, args...)...)
	}
	expectFile := func(want string) {
		t.Helper()
		if diff := cmp.Diff(map[string]string{"ism.conf": want}, m.files()); diff != "" {
			t.Errorf("files (-want +got): %s", diff)
		}
	}
	const blue, red = `"blue:256M,group=0"`, `"red:64M,members=2,mode=0600"`

	r, out := play(blue, "--check")
	m.expect(r, out, true, 0, "")
	if _, err := os.Stat(m.etc); !os.IsNotExist(err) {
		t.Errorf("check mode has made %s", m.etc)
	}
	r, out = play(blue)
	m.expect(r, out, true, 0, "start "+service+"; enable "+service)
	expectFile("blue:256M,group=0\n")
	r, out = play(blue)
	m.expect(r, out, false, 0, "")

	r, out = play(blue+", "+red, "--check")
	m.expect(r, out, true, 0, "")
	expectFile("blue:256M,group=0\n")
	r, out = play(blue + ", " + red)
	m.expect(r, out, true, 0, "restart "+service)
	expectFile("blue:256M,group=0\nred:64M,members=2,mode=0600\n")

	for fabrics, message := range map[string]string{
		"":                              "standard input has no fabric: add a line such as blue:256M",
		blue + `, "red:24M"`:            "standard input:3: fabric \\\"red\\\": the size of a fabric is a power of two",
		`"red:64M,group=no-such-group"`: "there is no group \\\"no-such-group\\\"",
		blue + ", " + blue:              "fabric \\\"blue\\\" is named twice",
	} {
		for _, args := range [][]string{{"--check"}, nil} {
			r, out = play(fabrics, args...)
			m.expect(r, out, false, 1, "")
			if !strings.Contains(out, message) {
				t.Errorf("the failure does not have the command's reason, %q:\n%s", message, out)
			}
			expectFile("blue:256M,group=0\nred:64M,members=2,mode=0600\n")
		}
	}

	// Somebody has stopped the service.
	if err := os.Remove(filepath.Join(m.fake, "active")); err != nil {
		t.Fatal(err)
	}
	r, out = play(blue + ", " + red)
	m.expect(r, out, true, 0, "start "+service)
	r, out = play(blue, "-e", "ism_service=false")
	m.expect(r, out, true, 0, "")
	expectFile("blue:256M,group=0\n")

	// The tasks that install are those of the other role, with this role's packages. The command is not there yet, for all that
	// check mode knows.
	file := filepath.Join(m.home, "smckit-ism.deb")
	write(t, file, "")
	r, out = play(`"red:24M"`, "--check", "-e", `{"ism_install": true, "ism_package_files": ["`+file+`"], "smc_package_files": ["missing"]}`)
	m.expect(r, out, true, 0, "")
	if !strings.Contains(out, "changed: [localhost] => (item="+file+")") || strings.Contains(out, "missing") {
		t.Errorf("other packages:\n%s", out)
	}
}
