// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// edit makes the changes of an administrator to the files of the package, which CheckConfigured expects.
const edit = `echo 'add LAB0 eth eth0
add LAB0 ib rxe0 1' >>/etc/smc/pnet.conf
echo SMCKIT.LAB >>/etc/smc/eid.conf
sed -i 's/^# rmem = .*/rmem = 131072/' /etc/smc/smc.conf`

// TestBoot sets up two machines with Debian 12 for SMC-R only by installing the packages and enabling the service. The
// configuration must survive a reboot and an upgrade, and purging the packages must remove everything.
func TestBoot(t *testing.T) {
	if !lab.Full() {
		t.Skip("boots Debian machines five times: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	need.Programs(t, "debootstrap", "mke2fs")
	was, is := build(t, older), build(t, version.Version)
	d := lab.NewRoCEHost(t, "bookworm")
	// The modules are compiled here: a guest would take a quarter of an hour.
	without := lines(snapshot(d))
	d.Must(is, "dpkg --install /mnt/smckit-dkms_*.deb")
	with := lines(snapshot(d))
	lt := lab.Start(t, lab.Options{Disk: d.Disk(), Hosts: 2})
	hosts := []string{"a", "b"}
	// Record the state of the machine without the package.
	before := lines(machine(lt, "a"))
	maps.DeleteFunc(before, func(line string, _ bool) bool { return with[line] && !without[line] })
	for line := range without {
		if !with[line] {
			before[line] = true
		}
	}

	for _, host := range hosts {
		bring(t, lt, host, was)
		lt.Must(host, install)
		lt.Must(host, edit+"\nsystemctl enable --now smc")
		checkService(t, lt, host)
	}
	lt.Reboot(hosts...)
	for _, host := range hosts {
		checkService(t, lt, host)
	}
	lt.TalkSMCR("a", "b")

	for _, host := range hosts {
		bring(t, lt, host, is)
		lt.Must(host, install)
		if out := lt.Must(host, "smcss --version"); !strings.Contains(out, version.Version) {
			t.Errorf("host %s: after the upgrade: %s", host, out)
		}
		checkService(t, lt, host)
	}
	lt.TalkSMCR("b", "a")
	t.Run("device", func(t *testing.T) { checkDevice(t, lt, "b") })

	lt.Must("a", "dpkg --purge smckit libsmc-preload smckit-dkms")
	checkGone(t, lt, "a")
	lt.Reboot("a")
	checkGone(t, lt, "a")
	compareSets(t, before, lines(machine(lt, "a")))
	if out := lt.Must("a", "lsmod"); strings.Contains(out, "smc") {
		t.Errorf("something loads a module at boot still:\n%s", out)
	}
}

// restless matches files that a running system writes by itself, except the notes of Debian's helper about units.
var restless = regexp.MustCompile(` \./var/(tmp/|lib/systemd/(random-seed|timers|catalog|timesync|linger|coredump|rfkill|backlight))`)

// machine lists the files of a running system.
func machine(lt *lab.Test, host string) []string {
	return slices.DeleteFunc(listed(lt.Must(host, listing)), restless.MatchString)
}

// bring copies packages to the directory from which install takes them.
func bring(t *testing.T, lt *lab.Test, host, dir string) {
	t.Helper()
	lt.Must(host, "rm -f /mnt/*")
	for _, pattern := range []string{"smckit_*.deb", "libsmc-preload_*_amd64.deb"} {
		for _, file := range glob(t, dir, pattern) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := lt.Host(host).WriteFile(t.Context(), "/mnt/"+filepath.Base(file), data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// checkService checks that the service is in use with our module, and that the kernel has the configuration of the files.
func checkService(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	lt.CheckConfigured(host)
	for command, want := range map[string]string{
		"systemctl is-enabled smc; systemctl is-active smc": "enabled\nactive\n",
		"cat /sys/module/smc/version":                       version.Version + "\n",
		"smc_conf apply --check":                            "",
	} {
		if got := lt.Must(host, command); got != want {
			t.Errorf("host %s: %s: %q, not %q", host, command, got, want)
		}
	}
}

// checkDevice removes a host's device and the kernel's configuration, and adds the device again.
func checkDevice(t *testing.T, lt *lab.Test, host string) {
	lt.Must(host, "rdma link delete rxe0; smc_pnet flush; udevadm trigger --action=add /sys/class/net/eth0")
	// Adding each device makes the service apply the configuration again.
	done := "udevadm settle && smc_pnet show | grep -q rxe0 && ! systemctl list-jobs | grep -q smc.service && systemctl is-active smc | grep -qx active"
	if err := lt.Host(host).WaitFor(t.Context(), done); err != nil {
		t.Fatal(err)
	}
	checkService(t, lt, host)
}

// checkGone checks that a host has nothing left of the packages.
func checkGone(t *testing.T, lt *lab.Test, host string) {
	t.Helper()
	for command, want := range map[string]string{
		"dpkg-query --list | grep -c smc || :":                                    "0\n",
		"find /etc /run/smckit /run/smc_conf.lock -name '*smc*' 2>/dev/null || :": "",
		"systemctl list-unit-files --no-legend 'smc*' | grep -v smckit-lab || :":  "",
		"modinfo -n smc | sed 's,/lib/modules/[^/]*/,,'":                          "kernel/net/smc/smc.ko\n",
	} {
		if got := lt.Must(host, command); got != want {
			t.Errorf("host %s: %s: %q, not %q", host, command, got, want)
		}
	}
}
