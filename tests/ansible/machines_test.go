// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
)

// machines describes the hosts: a's configuration is applied in a certain way, b's as the role chooses. a serves a fabric, too.
func machines(files []string, ism, apply string) string {
	return fmt.Sprintf(`---
all:
  vars:
    ansible_user: root
    ansible_python_interpreter: /usr/bin/python3
    smc_package_files: [%s]
  hosts:
    a:
      smc_apply: %s
      ism_package_files: [%s]
      ism_fabrics: ["blue:16M,members=2,group=root"]
    b:
`, strings.Join(files, ", "), apply, ism)
}

// TestMachines sets up two Debian machines with Ansible, whose process 1 is systemd, with our packages: by the command on one,
// by the service on the other. The first also serves a fabric to guests. When the first has the service, too, its whole configuration must survive a reboot.
func TestMachines(t *testing.T) {
	lab.Need(t)
	if !lab.Full() {
		t.Skip("boots Debian machines four times: in full runs only (SMCKIT_FULL=1)")
	}
	need.Programs(t, "ansible-playbook")
	need.Programs(t, "ssh", "ssh-keygen")
	need.Programs(t, "debootstrap")
	need.Programs(t, "mke2fs")
	dir := t.TempDir()
	lab.MakePackages(t, "DIST="+dir)
	d := lab.NewRoCEHost(t, "bookworm", "openssh-server", "python3", "python3-apt")
	// A guest would take a quarter of an hour to compile the modules.
	d.Must(dir, "dpkg --install /mnt/smckit-dkms_*.deb")
	find := func(pattern string) string {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %q, error %v", pattern, found, err)
		}
		return found[0]
	}
	files := []string{find("smckit-dkms_*.deb"), find("libsmc-preload_*_amd64.deb"), find("smckit_*.deb")}
	ism := find("smckit-ism_*_amd64.deb")
	lt := lab.Start(t, lab.Options{Disk: d.Disk(), Hosts: 2})
	c := newControl(t, lt, "/usr/bin")
	const playbook = "testdata/machines.yml"
	expect := func(when string, hosts map[string]recap, changed map[string]func(int) bool) {
		t.Helper()
		for name, as := range changed {
			if h, ok := hosts[name]; !ok || h.failed+h.unreachable > 0 || !as(h.changed) {
				t.Errorf("%s, host %s: %+v", when, name, h)
			}
		}
	}
	nothing, one, several := is(0), is(1), func(n int) bool { return n > 1 }

	hosts, _ := c.play(machines(files, ism, "command"), playbook)
	expect("the first run", hosts, map[string]func(int) bool{"a": several, "b": several})
	for name, want := range map[string]string{"a": "disabled\ninactive\n", "b": "enabled\nactive\n"} {
		if got := lt.Must(name, "systemctl is-enabled smc || :; systemctl is-active smc || :"); got != want {
			t.Errorf("the service of host %s is %q", name, got)
		}
		lt.CheckConfigured(name)
	}
	checkFabric(t, lt)
	hosts, _ = c.play(machines(files, ism, "command"), playbook)
	expect("the second run", hosts, map[string]func(int) bool{"a": nothing, "b": nothing})
	hosts, _ = c.play(machines(files, ism, "auto"), playbook)
	expect("with the service", hosts, map[string]func(int) bool{"a": one, "b": nothing})

	lt.Reboot("a", "b")
	for _, name := range []string{"a", "b"} {
		lt.CheckConfigured(name)
		c.prepare(lt.Host(name), "/usr/bin")
	}
	checkFabric(t, lt)
	lt.TalkSMCR("a", "b")
	hosts, _ = c.play(machines(files, ism, "auto"), playbook)
	expect("after the reboot", hosts, map[string]func(int) bool{"a": nothing, "b": nothing})
}

// checkFabric checks that the service of host a serves its fabric, and that clients do not notice when it restarts: a client that is
// a member stays one.
func checkFabric(t *testing.T, lt *lab.Test) {
	t.Helper()
	if got := lt.Must("a", "systemctl is-enabled smc-ismd; systemctl is-active smc-ismd; stat -c '%a %U:%G' /run/smc/ism/blue.sock"); got != "enabled\nactive\n660 root:root\n" {
		t.Errorf("the service of fabrics: %q", got)
	}
	client := `python3 - <<'EOF'
import socket, subprocess
list = lambda: subprocess.check_output(["smc_ismd", "list"]).decode()
s = socket.socket(socket.AF_UNIX)
s.connect("/run/smc/ism/blue.sock")
s.recv(16)
before = list()
subprocess.check_call(["systemctl", "restart", "smc-ismd"])
print(before == list(), before)
EOF`
	if got := lt.Must("a", client); !strings.HasPrefix(got, "True blue: 16M, ") || !strings.Contains(got, "1 of 2 members") {
		t.Errorf("a member while the service restarts: %s", got)
	}
}

// is returns a function that compares a number with n.
func is(want int) func(int) bool { return func(n int) bool { return n == want } }
