// SPDX-License-Identifier: Apache-2.0

//go:build linux

package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
	"github.com/smckit/smckit/internal/unitfile"
)

// dropIn is a block with a drop-in of a service, which begins with the name of the file.
var dropIn = regexp.MustCompile("(?ms)^```ini\n# /etc/systemd/system/([\\w@-]+\\.service)\\.d/[\\w-]+\\.conf\n(.*?)^```")

// TestDropIns checks the drop-ins of the documents with systemd, for services that exist.
func TestDropIns(t *testing.T) {
	need.Programs(t, "systemd-analyze")
	found := 0
	for _, name := range files(t) {
		for _, m := range dropIn.FindAllStringSubmatch(read(t, name), -1) {
			found++
			if out, err := verify(t, m[1], m[2]); err != nil || out != "" {
				t.Errorf("%s: the drop-in of %s: %v: %s", name, m[1], err, out)
			}
			// The documents say that one line is needed.
			without := strings.Replace(m[2], "ExecStart=\n", "", 1)
			if out, _ := verify(t, m[1], without); !strings.Contains(out, "more than one ExecStart= setting") {
				t.Errorf("%s: systemd takes a second ExecStart= for %s: %s", name, m[1], out)
			}
		}
	}
	if found == 0 {
		t.Error("no document has a drop-in")
	}
}

// verify has systemd check a service with a drop-in, and returns its output.
func verify(t *testing.T, unit, text string) (string, error) {
	t.Helper()
	top := t.TempDir()
	put := func(path, text string, mode os.FileMode) {
		path = filepath.Join(top, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("usr/lib/systemd/system/"+unit, "[Unit]\nDefaultDependencies=no\n[Service]\nExecStart=/usr/bin/program\n", 0o644)
	put("etc/systemd/system/"+unit+".d/zz-smc.conf", text, 0o644)
	put("usr/bin/program", "", 0o755)
	for _, m := range regexp.MustCompile(`(?m)^ExecStart=(\S+)`).FindAllStringSubmatch(text, -1) {
		put(m[1], "", 0o755)
	}
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "--root="+top, "--man=no", "verify", unit).CombinedOutput()
	return string(out), err
}

// TestDropInIsWritten compares the drop-in of docs/smc_run.md with the one that smc_run writes for Debian's service.
func TestDropInIsWritten(t *testing.T) {
	unit := unitfile.Unit{Name: "redis-server.service", Fragment: unitfile.File{Text: `[Service]
Type=notify
ExecStart=/usr/bin/redis-server /etc/redis/redis.conf --supervised systemd --daemonize no
PIDFile=/run/redis/redis-server.pid
PrivateTmp=true
ProtectHome=true
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallFilter=@system-service
SystemCallFilter=~ @privileged @resources
NoExecPaths=/
ExecPaths=/usr/bin/redis-server /usr/lib /lib
`}}
	text, notes, err := unit.DropIn(unitfile.Runner{
		Command: []string{"/usr/bin/smc_run"}, Library: "/usr/lib/x86_64-linux-gnu/libsmc-preload.so.1",
		Supervised: func(string) bool { return false },
	})
	if err != nil || notes != nil {
		t.Fatalf("%v %q", err, notes)
	}
	_, text, _ = strings.Cut(text, "\n")
	if m := dropIn.FindStringSubmatch(read(t, "docs/smc_run.md")); m == nil || m[2] != text {
		t.Errorf("docs/smc_run.md has another drop-in than this: %s", text)
	}
}

// TestDropInsAreComplete checks that no document advises a command for a service without the other lines that the service
// needs.
func TestDropInsAreComplete(t *testing.T) {
	for _, name := range files(t) {
		if regexp.MustCompile("`ExecStart=[^`]").MatchString(read(t, name)) {
			t.Errorf("%s: ExecStart= within a sentence: refer to the services in docs/smc_run.md", name)
		}
	}
}

// TestPackageNames compares the names of packages in the documents with those that 'make packages' builds.
func TestPackageNames(t *testing.T) {
	// VERSION-RELEASE for each; names with patterns are a shell's matter.
	deb := regexp.MustCompile(`\b((?:smckit|libsmc-preload|smckit-dkms|smckit-ism))_(\d[\w.~+-]*)_(amd64|all)\.deb`)
	found := 0
	for _, name := range append(files(t), "ansible/README.md") {
		for _, m := range deb.FindAllStringSubmatch(read(t, name), -1) {
			found++
			description := read(t, "packaging/nfpm/"+m[1]+".yaml")
			release := regexp.MustCompile(`(?m)^release: "(\d+)"$`).FindStringSubmatch(description)
			if release == nil || !strings.HasSuffix(m[2], "-"+release[1]) {
				t.Errorf("%s: %s: packages are named NAME_VERSION-%v_ARCHITECTURE.deb", name, m[0], release)
			}
		}
	}
	if found == 0 {
		t.Error("no document names a package")
	}
}
