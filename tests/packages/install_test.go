// SPDX-License-Identifier: Apache-2.0

//go:build linux

package packages

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// suites are the Debian systems that packages are installed in.
func suites() []string {
	if lab.Full() {
		return lab.Suites()
	}
	return []string{"bookworm"}
}

// listing lists all files of a system, each with mode and owner, and configuration with its contents. It omits the files
// that the package system writes with every change, but not its entries of each package.
const listing = `cd /
find . -xdev \( -path ./dev -o -path ./proc -o -path ./sys -o -path ./tmp -o -path ./mnt -o -path ./var/log -o -path ./var/cache \
	-o -path './var/lib/dpkg/*' -prune ! -path './var/lib/dpkg/info*' \) -prune -o -printf '%M %u:%g %p %l\n'
find etc -xdev -type f ! -name ld.so.cache -exec sha256sum {} +`

// snapshot is the listing of a system.
func snapshot(d *lab.Debian) []string { return listed(d.Must("/", listing)) }

func listed(out string) (lines []string) {
	for line := range strings.Lines(out) {
		lines = append(lines, strings.TrimSpace(line))
	}
	return lines
}

// compare fails a test if a system differs from its snapshot.
func compare(t *testing.T, before, after []string) {
	t.Helper()
	if len(before) < 1000 {
		t.Fatalf("a system of only %d files", len(before))
	}
	compareSets(t, lines(before), lines(after))
}

func compareSets(t *testing.T, before, after map[string]bool) {
	t.Helper()
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("left behind (+) or lost (-):\n%s", diff)
	}
}

func lines(list []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range list {
		set[line] = true
	}
	return set
}

// install returns a script that installs packages from a directory mounted at /mnt.
const install = `dpkg --install /mnt/smckit_*.deb /mnt/libsmc-preload_*_$(dpkg --print-architecture).deb`

// installAll does so with the package for hosts of guests, too.
const installAll = install + ` /mnt/smckit-ism_*_$(dpkg --print-architecture).deb`

// installed are the packages of installAll.
const installed = "smckit libsmc-preload smckit-ism"

// services are the services of these packages.
var services = []string{"smc", "smc-ismd"}

// TestInstall installs, upgrades, removes and purges the packages of the commands in fresh Debian systems.
func TestInstall(t *testing.T) {
	if !lab.Full() {
		t.Skip("takes minutes: SMCKIT_FULL=1")
	}
	need.Programs(t, "debootstrap")
	for _, suite := range suites() {
		t.Run(suite, func(t *testing.T) {
			d := lab.NewDebian(t, suite)
			was, is := build(t, older), build(t, version.Version)
			// Another service is enabled, as on any system: an empty directory would go with the last one.
			d.Must("/", `cd /etc/systemd/system
mkdir -p multi-user.target.wants
ln -s /usr/lib/systemd/system/other.service multi-user.target.wants/`)
			before := snapshot(d)

			d.Must(was, installAll)
			checkAllCommands(t, d, older)
			// A second run has to succeed for scripts that run as root.
			for _, p := range []string{"smckit", "smckit-ism"} {
				d.Must(was, "DPKG_MAINTSCRIPT_NAME=postinst DPKG_MAINTSCRIPT_PACKAGE="+p+" /var/lib/dpkg/info/"+p+".postinst configure")
			}
			if out, err := d.Try(is, "test -z \"$(find /etc/systemd -name 'smc*')\""); err != nil {
				t.Errorf("installing has enabled a service: %s", out)
			}
			for _, s := range services {
				d.Must(is, "ln -s /usr/lib/systemd/system/"+s+".service /etc/systemd/system/multi-user.target.wants/")
			}
			config := names(t, "packaging/etc/smc/*")
			for _, name := range config {
				d.Must(is, "echo '# of the administrator' >>/etc/smc/"+name)
			}

			d.Must(is, installAll)
			checkAllCommands(t, d, version.Version)
			kept := func(when string) {
				t.Helper()
				for _, name := range config {
					if out := d.Must(is, "tail -n 1 /etc/smc/"+name); out != "# of the administrator\n" {
						t.Errorf("%s: /etc/smc/%s: %q", when, name, out)
					}
				}
				for _, s := range services {
					d.Must(is, "test -L /etc/systemd/system/multi-user.target.wants/"+s+".service")
				}
			}
			kept("after the upgrade")

			d.Must(is, "dpkg --remove "+installed)
			if out, err := d.Try(is, "test -z \"$(find /usr/bin /usr/lib/systemd -name 'smc*')\""); err != nil {
				t.Errorf("after removal: %s", out)
			}
			kept("after removal")
			d.Must(is, "dpkg --purge "+installed)
			compare(t, before, snapshot(d))

			d.Must(is, installAll+"; mkdir /run/smckit; touch /run/smckit/baseline /run/smc_conf.lock; dpkg --purge "+installed)
			compare(t, before, snapshot(d))
		})
	}
}

// checkAllCommands runs commands of a version, with that of the package for hosts of guests.
func checkAllCommands(t *testing.T, d *lab.Debian, v string) {
	t.Helper()
	checkCommands(t, d, v)
	if out := d.Must("/", "smc_ismd --version"); !strings.Contains(out, v) {
		t.Errorf("smc_ismd is not of version %s: %s", v, out)
	}
}

// checkCommands runs commands of a version.
func checkCommands(t *testing.T, d *lab.Debian, v string) {
	t.Helper()
	all := commands(t)
	out := d.Must("/", "for c in "+strings.Join(all, " ")+`; do $c --version; done
LD_PRELOAD=libsmc-preload.so.1 cat /proc/self/maps`)
	if got := strings.Count(out, v); got != len(all) {
		t.Errorf("%d of the commands %q say that they are of version %s:\n%s", got, all, v, out)
	}
	if !regexp.MustCompile(`/usr/lib/\S+/libsmc-preload\.so\.1`).MatchString(out) || strings.Contains(out, "cannot be preloaded") {
		t.Errorf("the loader does not find the library:\n%s", out)
	}
}

// TestReplace installs the packages on a system with smc-tools.
func TestReplace(t *testing.T) {
	need.Programs(t, "debootstrap", "dpkg-deb")
	d := lab.NewDebian(t, "bookworm")
	tree := t.TempDir()
	lib := "/usr/lib/x86_64-linux-gnu/"
	for file, text := range map[string]string{
		"DEBIAN/control": "Package: smc-tools\nVersion: 1.8.3-1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.org>\n" +
			"Description: what is to be replaced\n",
		"/usr/bin/smcss":            "#!/bin/sh\n",
		lib + "libsmc-preload.so.1": "",
	} {
		if err := os.MkdirAll(filepath.Join(tree, filepath.Dir(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(tree, file), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	output(t, "chmod", "755", tree)
	output(t, "dpkg-deb", "--root-owner-group", "--build", tree, tree+"/smc-tools.deb")
	d.Must(tree, "dpkg --install /mnt/smc-tools.deb")

	d.Must(build(t, version.Version), install)
	checkCommands(t, d, version.Version)
	if out := d.Must("/", "dpkg-query --show --showformat '${db:Status-Status} ' smc-tools smckit libsmc-preload || :"); strings.Contains(out, "smc-tools") ||
		strings.Count(out, "installed") != strings.Count(out, "not-installed")+2 {
		t.Errorf("status: %s", out)
	}
	// Packages that depend on smc-tools can be installed.
	if out := d.Must("/", "dpkg --audit; apt-get check 2>&1"); strings.Contains(out, "unmet") {
		t.Error(out)
	}
}

// TestDKMS installs, upgrades and purges the package of the modules where a kernel's headers are, and where none are: with
// the DKMS, the compiler and the kernel of each Debian release that has a kernel we support.
func TestDKMS(t *testing.T) {
	if !lab.Full() {
		t.Skip("compiles the modules twice: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	need.Programs(t, "debootstrap")
	was, is := build(t, older), build(t, version.Version)
	for _, suite := range lab.Suites() {
		t.Run(suite, func(t *testing.T) { dkms(t, suite, was, is) })
	}
}

// dkms does so on one release, from directories with packages of two versions.
func dkms(t *testing.T, suite, was, is string) {
	d := lab.NewDebian(t, suite, "dkms", "linux-headers-amd64", "openssl")
	kernel := prepareForDKMS(d)
	before := snapshot(d)

	d.Must(was, "dpkg --install /mnt/smckit-dkms_*.deb")
	checkModules(t, d, kernel, older)
	d.Must(is, "dpkg --install /mnt/smckit-dkms_*.deb")
	checkModules(t, d, kernel, version.Version)
	// Installed again, nothing changes.
	again := snapshot(d)
	d.Must(is, "dpkg --install /mnt/smckit-dkms_*.deb")
	compare(t, again, snapshot(d))
	d.Must(is, "dpkg --purge smckit-dkms")
	compare(t, before, snapshot(d))

	// Without headers, the package can be installed, too.
	d.Must(is, "mv /lib/modules /lib/modules.away")
	out := d.Must(is, "mkdir /lib/modules; dpkg --install /mnt/smckit-dkms_*.deb")
	if !strings.Contains(out, "no kernel has its headers here") {
		t.Errorf("without headers: %s", out)
	}
	d.Must(is, "dpkg --purge smckit-dkms; rmdir /lib/modules; mv /lib/modules.away /lib/modules")
	compare(t, before, snapshot(d))
}

// prepareForDKMS installs another module first, which leaves files such as the machine's key, and returns the kernel's
// release.
func prepareForDKMS(d *lab.Debian) string {
	return strings.Fields(d.Must("/", `cd /lib/modules; ls -d *-amd64; depmod -a *-amd64
openssl req -new -x509 -nodes -days 1 -subj /CN=machine/ -newkey rsa:2048 \
	-keyout /var/lib/dkms/mok.key -outform DER -out /var/lib/dkms/mok.pub 2>/dev/null`))[0]
}

// TestSources installs the modules from the sources, in both ways there are, and removes them again.
func TestSources(t *testing.T) {
	if !lab.Full() {
		t.Skip("compiles the modules twice: set SMCKIT_FULL=1, or run 'make test-full'")
	}
	need.Programs(t, "debootstrap")
	d := lab.NewDebian(t, "bookworm", "dkms", "linux-headers-amd64", "openssl")
	sources := t.TempDir()
	if err := os.CopyFS(filepath.Join(sources, "kernel"), os.DirFS("../../kernel")); err != nil {
		t.Fatal(err)
	}
	output(t, "cp", "../../Makefile", sources)
	kernel := prepareForDKMS(d)
	before := snapshot(d)
	inside := func(script string) string {
		t.Helper()
		return d.Must(sources, "rm -rf /tmp/sources; cp -r /mnt /tmp/sources; cd /tmp/sources; "+script)
	}
	for _, way := range []struct{ install, uninstall, dir string }{
		{"modules_install", "modules_uninstall", "updates"},
		{"dkms-install", "dkms-uninstall", "updates/dkms"},
	} {
		which := "KERNEL=" + kernel + " KDIR=/lib/modules/" + kernel + "/build"
		inside("make " + way.install + " " + which)
		for _, module := range []string{"smc", "smc_diag"} {
			want := "/lib/modules/" + kernel + "/" + way.dir + "/" + module + ".ko"
			if got := strings.TrimSpace(d.Must("/", "modinfo -k "+kernel+" -n "+module)); !strings.HasSuffix(got, want) {
				t.Errorf("after %s modprobe loads %s, not %s", way.install, got, want)
			}
		}
		inside("make " + way.uninstall + " " + which)
		compare(t, before, snapshot(d))
	}
}

// checkModules checks the modules that DKMS has built.
func checkModules(t *testing.T, d *lab.Debian, kernel, v string) {
	t.Helper()
	for _, module := range []string{"smc", "smc_diag"} {
		// Kernels of newer releases have compressed modules, and DKMS compresses its modules in the same way.
		file := regexp.MustCompile(`/lib/modules/` + regexp.QuoteMeta(kernel) + `/updates/dkms/` + module + `\.ko(\.xz|\.zst)?$`)
		got := d.Must("/", fmt.Sprintf("cd /; f=$(modinfo -k %s -n %s); echo $f; modinfo -F version $f; modinfo -F signer $f", kernel, module))
		lines := strings.Split(strings.TrimSpace(got), "\n")
		if len(lines) != 3 || !file.MatchString(lines[0]) || lines[1] != v || lines[2] != "machine" {
			t.Errorf("path, version and signer of %s are %q", module, lines)
		}
	}
	if got := d.Must("/", "dkms status smckit"); strings.Count(got, "\n") != 1 || !strings.Contains(got, v) || !strings.Contains(got, "installed") {
		t.Errorf("dkms status: %s", got)
	}
}

// TestRPM installs, upgrades and removes the packages of the other format, with their scripts, in the files of a Debian
// system: no tool makes one of another distribution here.
func TestRPM(t *testing.T) {
	need.Programs(t, "debootstrap", "rpm")
	d := lab.NewDebian(t, "bookworm")
	was, is := build(t, older), build(t, version.Version)
	rpm := func(args ...string) {
		t.Helper()
		output(t, append([]string{"rpm", "--root", d.Dir, "--nodeps", "--nosignature"}, args...)...)
	}
	output(t, "rpm", "--root", d.Dir, "--initdb")
	// Directories that such systems have.
	d.Must(is, "cd /usr/lib; mkdir -p ../share/licenses ../share/fish/vendor_completions.d ../share/zsh/site-functions modprobe.d modules-load.d sysctl.d udev/rules.d systemd/system")
	before := snapshot(d)
	packages := func(dir string) []string {
		return append(glob(t, dir, "smckit-[0-9]*.rpm"), glob(t, dir, "libsmc-preload-*.x86_64.rpm")...)
	}
	rpm(append([]string{"--install"}, packages(was)...)...)
	config := smckitConfig(t)
	for _, name := range config {
		d.Must(is, "echo '# of the administrator' >>/etc/smc/"+name)
	}
	rpm(append([]string{"--upgrade"}, packages(is)...)...)
	out := d.Must(is, "smcss --version; LD_PRELOAD=/usr/lib64/libsmc-preload.so.1 true")
	if !strings.Contains(out, version.Version) || strings.Contains(out, "preloaded") {
		t.Error(out)
	}
	for _, name := range config {
		if out := d.Must(is, "tail -n 1 /etc/smc/"+name); out != "# of the administrator\n" {
			t.Errorf("after the upgrade: /etc/smc/%s: %q", name, out)
		}
	}
	rpm("--erase", "smckit", "libsmc-preload")
	d.Must(is, "rm -f /etc/smc/*.rpmsave; rmdir /etc/smc 2>/dev/null || :")
	compare(t, before, snapshot(d))
}
