// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package packages tests the packages: their contents and fields, and the effects of installing, upgrading and removing them
// on Debian systems.
package packages

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/lab"
	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/version"
)

// older is a version number below all real ones.
const older = "0.0.1~test"

// built are directories with packages, by version. They are built once.
var built struct {
	sync.Mutex
	root     string
	versions map[string]string
}

func TestMain(m *testing.M) {
	status := m.Run()
	if built.root != "" {
		os.RemoveAll(built.root)
	}
	os.Exit(status)
}

// build returns a directory with the packages of a version.
func build(t *testing.T, v string) string {
	t.Helper()
	lab.Need(t)
	built.Lock()
	defer built.Unlock()
	if built.root == "" {
		root, err := os.MkdirTemp("", "packages-")
		if err != nil {
			t.Fatal(err)
		}
		built.root, built.versions = root, map[string]string{}
	}
	if dir := built.versions[v]; dir != "" {
		return dir
	}
	dir := filepath.Join(built.root, v)
	lab.MakePackages(t, "VERSION="+v, "DIST="+dir)
	built.versions[v] = dir
	return dir
}

// output runs a program of this machine.
func output(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	// This process may have been started by make.
	cmd.Env = append(os.Environ(), "LC_ALL=C", "MAKEFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", argv, err, out, stderr.String())
	}
	return string(out)
}

// pkg is a package as read by the tool that installs it.
type pkg struct {
	files  []string // MODE OWNER/GROUP PATH, with links as PATH -> TARGET
	config []string
	fields map[string]string
	script []string // names
}

// readDeb reads a .deb.
func readDeb(t *testing.T, file string) pkg {
	t.Helper()
	p := pkg{fields: map[string]string{}}
	for line := range strings.Lines(output(t, "dpkg-deb", "--contents", file)) {
		// MODE OWNER SIZE DATE TIME PATH
		f := strings.Fields(line)
		owner := strings.Replace(f[1], "0/0", "root/root", 1)
		p.files = append(p.files, strings.Join(append([]string{f[0], owner, strings.TrimPrefix(f[5], ".")}, f[6:]...), " "))
	}
	for line := range strings.Lines(output(t, "dpkg-deb", "--field", file)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			p.fields[key] = value
		}
	}
	dir := t.TempDir()
	output(t, "dpkg-deb", "--control", file, dir)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		switch e.Name() {
		case "postinst", "preinst", "postrm", "prerm", "triggers":
			p.script = append(p.script, e.Name())
		case "conffiles":
			data, err := os.ReadFile(filepath.Join(dir, "conffiles"))
			if err != nil {
				t.Fatal(err)
			}
			p.config = strings.Fields(string(data))
		}
	}
	return p
}

// readRPM reads an .rpm.
func readRPM(t *testing.T, file string) pkg {
	t.Helper()
	p := pkg{fields: map[string]string{}}
	const list = `[%{FILEMODES:perms} %{FILEUSERNAME}/%{FILEGROUPNAME} %{FILENAMES} -> %{FILELINKTOS}\n]`
	for line := range strings.Lines(output(t, "rpm", "-qp", "--nosignature", "--qf", list, file)) {
		p.files = append(p.files, strings.TrimSuffix(strings.TrimSpace(line), " ->"))
	}
	for _, what := range []string{"requires", "provides", "recommends", "suggests", "conflicts", "obsoletes"} {
		var values []string
		for line := range strings.Lines(output(t, "rpm", "-qp", "--nosignature", "--"+what, file)) {
			if !strings.HasPrefix(line, "rpmlib(") {
				values = append(values, strings.TrimSpace(line))
			}
		}
		slices.Sort(values)
		p.fields[what] = strings.Join(slices.Compact(values), ", ")
	}
	p.config = strings.Fields(output(t, "rpm", "-qp", "--nosignature", "--configfiles", file))
	for _, m := range regexp.MustCompile(`(?m)^(\w+) scriptlet `).FindAllStringSubmatch(output(t, "rpm", "-qp", "--nosignature", "--scripts", file), -1) {
		p.script = append(p.script, m[1])
	}
	return p
}

// names gives the base names of the files that match below the root of the repository.
func names(t *testing.T, pattern string) (found []string) {
	t.Helper()
	paths, err := filepath.Glob("../../" + pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range paths {
		found = append(found, filepath.Base(p))
	}
	return found
}

// hostFiles are files of the package for hosts of guests, not of smckit.
var hostFiles = []string{"smc_ismd", "ism.conf", "smc-ismd.service"}

func isHostFile(name string) bool { return slices.Contains(hostFiles, name) }

// commands are the programs of the package smckit.
func commands(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, "cmd/*"), func(c string) bool { return c == "smclab" || isHostFile(c) })
}

// paths picks the paths that match.
func paths(files []string, pattern string) (found []string) {
	re := regexp.MustCompile(pattern)
	for _, line := range files {
		if path := strings.Fields(line)[2]; re.MatchString(path) {
			found = append(found, path)
		}
	}
	return found
}

// TestContents checks the files in the packages of this version.
func TestContents(t *testing.T) {
	need.Programs(t, "dpkg-deb", "rpm")
	if runtime.GOARCH != "amd64" {
		t.Skip("names are those of amd64")
	}
	dir := build(t, version.Version)
	v := version.Version + "-1"
	deb := func(name string) pkg { return readDeb(t, filepath.Join(dir, name+".deb")) }
	rpm := func(name string) pkg { return readRPM(t, filepath.Join(dir, name+".rpm")) }
	all := map[string]pkg{
		"smckit deb": deb("smckit_" + v + "_amd64"), "smckit rpm": rpm("smckit-" + v + ".x86_64"),
		"preload deb": deb("libsmc-preload_" + v + "_amd64"), "preload rpm": rpm("libsmc-preload-" + v + ".x86_64"),
		"ism deb": deb("smckit-ism_" + v + "_amd64"), "ism rpm": rpm("smckit-ism-" + v + ".x86_64"),
		"dkms deb": deb("smckit-dkms_" + v + "_all"), "dkms rpm": rpm("smckit-dkms-" + v + ".noarch"),
	}
	// Links have no mode of their own; ignore the one of an .rpm.
	mode := regexp.MustCompile(`^(-rw-r--r-- root/root|-rwxr-xr-x root/root (/usr/bin/smckit$|/usr/lib64/libsmc-preload\.so\.1$)|` +
		`drwxr-xr-x root/root|l\S+ root/root .* -> )`)
	for name, p := range all {
		for _, line := range p.files {
			if !mode.MatchString(line) {
				t.Errorf("%s: mode or owner: %s", name, line)
			}
		}
	}

	for name, description := range map[string]string{
		"deb": output(t, "dpkg-deb", "--field", filepath.Join(dir, "smckit_"+v+"_amd64.deb"), "Description"),
		"rpm": output(t, "rpm", "-qp", "--nosignature", "--qf", "%{DESCRIPTION}", filepath.Join(dir, "smckit-"+v+".x86_64.rpm")),
	} {
		for _, c := range commands(t) {
			if !regexp.MustCompile(`\b` + c + `\b`).MatchString(description) {
				t.Errorf("the description of the %s says nothing of %s:\n%s", name, c, description)
			}
		}
	}

	var config []string
	for _, name := range smckitConfig(t) {
		config = append(config, "/etc/smc/"+name)
	}
	units := append(append(names(t, "packaging/systemd/*"), names(t, "packaging/udev/*")...), names(t, "packaging/*.d/*")...)
	units = slices.DeleteFunc(units, isHostFile)
	slices.Sort(units)
	for _, name := range []string{"smckit deb", "smckit rpm"} {
		p := all[name]
		checkProgram(t, name, p)
		var got []string
		zsh := map[string]string{"smckit deb": "vendor-completions", "smckit rpm": "site-functions"}[name]
		for _, c := range commands(t) {
			for _, pattern := range []string{"/man/man8/%s.8.gz", "/bash-completion/completions/%s", "/zsh/" + zsh + "/_%s", "/fish/vendor_completions.d/%s.fish"} {
				path := "/usr/share" + fmt.Sprintf(pattern, c)
				if len(paths(p.files, "^"+regexp.QuoteMeta(path)+"$")) != 1 {
					t.Errorf("%s: no %s", name, path)
				}
			}
		}
		var documents []string
		for _, name := range names(t, "docs/*") {
			documents = append(documents, "/usr/share/doc/smckit/docs/"+name)
		}
		if diff := cmp.Diff(documents, paths(p.files, `^/usr/share/doc/smckit/docs/.`)); diff != "" {
			t.Errorf("%s: documents (-want +got):\n%s", name, diff)
		}
		if got, want := strings.Join(p.config, " "), strings.Join(config, " "); got != want {
			t.Errorf("%s: configuration %s, not %s", name, got, want)
		}
		for _, path := range paths(p.files, `^/usr/lib/(systemd/system|udev/rules\.d|[a-z-]+\.d)/.`) {
			got = append(got, filepath.Base(path))
		}
		slices.Sort(got)
		if diff := cmp.Diff(units, got); diff != "" {
			t.Errorf("%s: units and rules (-want +got):\n%s", name, diff)
		}
	}

	checkHostPackage(t, all)
	sources := func(p pkg) []string {
		return paths(p.files, `^/usr/src/smckit-`+regexp.QuoteMeta(version.Version)+`/.*[^/]$`)
	}
	if list := sources(all["dkms deb"]); len(list) < 80 || !slices.Contains(list, "/usr/src/smckit-"+version.Version+"/dkms.conf") {
		t.Errorf("sources of the modules: %q", list)
	}
	for name, want := range map[string][]string{
		"preload deb": {"/usr/lib/x86_64-linux-gnu/libsmc-preload.so", "/usr/lib/x86_64-linux-gnu/libsmc-preload.so.1"},
		"preload rpm": {"/usr/lib64/libsmc-preload.so", "/usr/lib64/libsmc-preload.so.1"},
	} {
		if diff := cmp.Diff(want, paths(all[name].files, `libsmc-preload\.so`)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	for name, want := range map[string]string{
		"smckit deb":  "postinst postrm prerm",
		"smckit rpm":  "postinstall preuninstall postuninstall",
		"preload deb": "triggers",
		"preload rpm": "postinstall postuninstall",
		"ism deb":     "postinst postrm prerm",
		"ism rpm":     "postinstall preuninstall postuninstall",
		"dkms deb":    "postinst prerm",
		"dkms rpm":    "postinstall preuninstall",
	} {
		if got := strings.Join(all[name].script, " "); got != want {
			t.Errorf("%s: scripts %s, not %s", name, got, want)
		}
	}
	checkFields(t, all, v)
}

// checkProgram checks that all commands of the package smckit are links to one program.
func checkProgram(t *testing.T, name string, p pkg) {
	t.Helper()
	want := map[string]string{}
	for _, c := range commands(t) {
		want[c] = "smckit"
	}
	want["smckit"] = ""
	if diff := cmp.Diff(want, programs(p)); diff != "" {
		t.Errorf("%s: commands, and what they are links to (-want +got):\n%s", name, diff)
	}
}

// programs returns the files in /usr/bin with the targets of links.
func programs(p pkg) map[string]string {
	got := map[string]string{}
	for _, line := range p.files {
		f := strings.Fields(line)
		command, ok := strings.CutPrefix(f[2], "/usr/bin/")
		if !ok || command == "" {
			continue
		}
		got[command] = ""
		if len(f) > 4 {
			got[command] = f[4]
		}
	}
	return got
}

// smckitConfig has the names of the configuration files of smckit.
func smckitConfig(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(names(t, "packaging/etc/smc/*"), isHostFile)
}

// checkHostPackage checks that everything for hosts of guests is in smckit-ism, and nothing else is.
func checkHostPackage(t *testing.T, all map[string]pkg) {
	t.Helper()
	for name, zsh := range map[string]string{"ism deb": "vendor-completions", "ism rpm": "site-functions"} {
		want := []string{
			"/etc/smc/ism.conf", "/usr/bin/smc_ismd", "/usr/lib/systemd/system/smc-ismd.service",
			"/usr/share/bash-completion/completions/smc_ismd", "/usr/share/fish/vendor_completions.d/smc_ismd.fish",
			"/usr/share/man/man8/smc_ismd-check.8.gz", "/usr/share/man/man8/smc_ismd-list.8.gz",
			"/usr/share/man/man8/smc_ismd.8.gz", "/usr/share/zsh/" + zsh + "/_smc_ismd",
		}
		got := paths(all[name].files, `^/(etc|usr/(bin|lib|share/(bash-completion|fish|man|zsh)))/.*[^/]$`)
		got = slices.DeleteFunc(got, func(path string) bool { return path == "/etc/smc" || !strings.Contains(filepath.Base(path), "ism") })
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff(map[string]string{"smc_ismd": "smckit"}, programs(all[name])); diff != "" {
			t.Errorf("%s: commands, and what they are links to (-want +got):\n%s", name, diff)
		}
		if got := strings.Join(all[name].config, " "); got != "/etc/smc/ism.conf" {
			t.Errorf("%s: configuration %s", name, got)
		}
	}
	for _, name := range []string{"smckit deb", "smckit rpm"} {
		if found := paths(all[name].files, `ismd|ism\.conf`); len(found) > 0 {
			t.Errorf("%s: %q belong to smckit-ism", name, found)
		}
	}
}

// checkFields compares the fields of packages about other packages.
func checkFields(t *testing.T, all map[string]pkg, v string) {
	for name, want := range map[string]map[string]string{
		"smckit deb": {
			"Version": v, "Depends": "", "Recommends": "libsmc-preload", "Suggests": "smckit-dkms", "Conflicts": "smc-tools",
			"Replaces": "smc-tools", "Provides": "smc-tools", "Breaks": "",
		},
		"smckit rpm": {
			"requires": "/bin/sh", "recommends": "libsmc-preload", "suggests": "smckit-dkms", "conflicts": "smc-tools",
			"obsoletes": "smc-tools < 1.9", "provides": "smc-tools = 1.9, smckit = " + v,
		},
		"preload deb": {
			"Version": v, "Depends": "", "Multi-Arch": "same", "Breaks": "smc-tools (<< 2~)", "Replaces": "smc-tools (<< 2~)",
			"Conflicts": "", "Provides": "",
		},
		"preload rpm": {"requires": "/bin/sh, /sbin/ldconfig", "obsoletes": "smc-tools < 1.9", "conflicts": "", "provides": "libsmc-preload = " + v},
		"ism deb":     {"Version": v, "Depends": "smckit (>= " + v + ")", "Conflicts": "", "Replaces": "", "Provides": ""},
		"ism rpm":     {"requires": "/bin/sh, smckit >= " + v, "conflicts": "", "provides": "smckit-ism = " + v},
		"dkms deb": {
			"Version": v, "Depends": "dkms",
			"Recommends": "linux-headers-amd64 | linux-headers-arm64 | linux-headers-s390x | linux-headers-generic | linux-headers",
			"Conflicts":  "",
		},
		"dkms rpm": {"requires": "/bin/sh, dkms", "recommends": "kernel-devel", "provides": "smckit-dkms = " + v},
	} {
		for field, value := range want {
			if got := all[name].fields[field]; got != value {
				t.Errorf("%s: %s: %q, not %q", name, field, got, value)
			}
		}
	}
}

// TestLint runs lintian on the packages. packaging/lintian-overrides lists the accepted findings, with reasons.
func TestLint(t *testing.T) {
	need.Programs(t, "lintian")
	dir := build(t, version.Version)
	debs := glob(t, dir, "*.deb")
	report := lint(t, append([]string{"lintian", "--tag-display-limit", "0"}, debs...)...)
	for _, m := range regexp.MustCompile(`(?m)^[EW]: .*$`).FindAllString(report, -1) {
		t.Error(m)
	}
}

// TestLintRPM checks the other packages with rpmlint, which unpacks them with cpio. nfpm gives absolute names to files, and
// cpio would write to these names. So the test runs in a root that is deleted afterwards, with a cpio that treats the names as
// relative, so that rpmlint finds the files.
func TestLintRPM(t *testing.T) {
	need.Programs(t, "debootstrap")
	d := lab.NewDebian(t, "bookworm", "rpmlint", "rpm", "python3-cffi-backend")
	d.Must(build(t, version.Version), `dpkg-divert --quiet --rename --divert /usr/bin/cpio.real /usr/bin/cpio
printf '#!/bin/sh\nexec cpio.real --no-absolute-filenames "$@"\n' >/usr/bin/cpio
chmod 755 /usr/bin/cpio
mkdir /root/rpms
cp /mnt/*.rpm /root/rpms`)
	config, err := filepath.Abs("../../packaging")
	if err != nil {
		t.Fatal(err)
	}
	// Its exit status shows whether it has findings.
	report, err := d.Try(config, "rpmlint --config /mnt/rpmlint.toml /root/rpms/*.rpm")
	checked := regexp.MustCompile(`(?m)\b(\d+) packages and 0 specfiles checked`).FindStringSubmatch(report)
	if checked == nil || checked[1] != strconv.Itoa(len(glob(t, build(t, version.Version), "*.rpm"))) {
		t.Fatalf("%v\n%s", err, report)
	}
	for _, m := range regexp.MustCompile(`(?m)^\S+: [EW]: .*$`).FindAllString(report, -1) {
		t.Error(m)
	}
	t.Log(report)
}

// lint runs a checker, whose exit status shows whether it has findings, and returns its output.
func lint(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%s: %v\n%s", argv[0], err, out)
	}
	return string(out)
}

func glob(t *testing.T, dir, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(found) == 0 {
		t.Fatalf("no %s in %s: %v", pattern, dir, err)
	}
	return found
}

// TestScripts runs shellcheck on the scripts that run as root on other machines, and on those that make the packages.
func TestScripts(t *testing.T) {
	need.Programs(t, "shellcheck")
	argv := []string{"shellcheck"}
	for _, pattern := range []string{"packaging/scripts/*", "packaging/*.sh", "preload/*.sh"} {
		for _, name := range names(t, pattern) {
			argv = append(argv, filepath.Join("../..", filepath.Dir(pattern), name))
		}
	}
	if len(argv) < 8 {
		t.Fatalf("only %q", argv)
	}
	output(t, argv...)
}

// TestVersions checks the versions of packages for versions that git describes.
func TestVersions(t *testing.T) {
	need.Programs(t, "make")
	for describe, want := range map[string]string{
		"":                           version.Version,
		"0.2.0":                      "0.2.0",
		"0.2.0-rc1":                  "0.2.0~rc1",
		"0.2.0-3-g1234567":           "0.2.0+3.g1234567",
		"0.2.0-rc1-12-g1234567":      "0.2.0~rc1+12.g1234567",
		"0.2.0-rc1-12-g1234567-dirt": "0.2.0~rc1+12.g1234567~dirt",
	} {
		got := output(t, "make", "-s", "-C", "../..", "--no-print-directory", "package-version", "VERSION="+describe)
		if strings.TrimSpace(got) != want {
			t.Errorf("%q: %q, not %q", describe, got, want)
		}
	}
}
