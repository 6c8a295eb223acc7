// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

// recap is the summary of a run of a playbook for a host.
type recap struct{ ok, changed, unreachable, failed int }

var recapLine = regexp.MustCompile(`(?m)^(\S+)\s+: ok=(\d+)\s+changed=(\d+)\s+unreachable=(\d+)\s+failed=(\d+)`)

// recaps parses Ansible's summary at the end of a run.
func recaps(out string) map[string]recap {
	all := map[string]recap{}
	for _, m := range recapLine.FindAllStringSubmatch(out, -1) {
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(m[i+2])
		}
		all[m[1]] = recap{n[0], n[1], n[2], n[3]}
	}
	return all
}

// machine is this machine as the role sees it, with fake commands.
type machine struct {
	*tree
	t    *testing.T
	fake string // their directory
	etc  string // the role's
}

func newMachine(t *testing.T) *machine {
	need.Programs(t, "ansible-playbook")
	dir := t.TempDir()
	m := &machine{tree: install(t), t: t, fake: filepath.Join(dir, "bin"), etc: filepath.Join(dir, "etc")}
	if err := os.CopyFS(m.fake, os.DirFS("testdata/bin")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"smc_chk", "smc_pnet", "smc_conf", "systemctl"} {
		if err := os.Chmod(filepath.Join(m.fake, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// In check mode the command must not change the files.
	build(t, filepath.Join(m.fake, "real"), "smc_conf")
	return m
}

// play runs the role for hosts that use SMC with additional variables, and returns its recap and the output of Ansible.
func (m *machine) play(device string, args ...string) (recap, string) {
	m.t.Helper()
	return m.playbook("role.yml", append([]string{"-e", "test_device=" + device, "-e", "smc_directory=" + m.etc}, args...)...)
}

// playbook runs a playbook of testdata, and returns the recap and the output of Ansible.
func (m *machine) playbook(name string, args ...string) (recap, string) {
	m.t.Helper()
	playbook, err := filepath.Abs("testdata/" + name)
	if err != nil {
		m.t.Fatal(err)
	}
	argv := append([]string{
		"ansible-playbook", "-i", "localhost,",
		// The home of the user who runs this test may not exist.
		"-e", "ansible_remote_tmp=" + filepath.Join(m.home, "remote"), playbook,
	}, args...)
	path := "PATH=" + m.fake + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
	_, out := m.run(m.t, m.home, []string{path}, argv...)
	r, ok := recaps(out)["localhost"]
	if !ok {
		m.t.Fatalf("no recap:\n%s", out)
	}
	return r, out
}

// log returns the calls of smc_conf and systemctl since the last call, without those that only look: checks have directories of
// their own.
func (m *machine) log() string {
	m.t.Helper()
	file := filepath.Join(m.fake, "log")
	data, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		m.t.Fatal(err)
	}
	if err := os.RemoveAll(file); err != nil {
		m.t.Fatal(err)
	}
	var kept []string
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "check ") {
			kept = append(kept, strings.TrimSpace(strings.ReplaceAll(line, m.etc, "DIR")))
		}
	}
	return strings.Join(kept, "; ")
}

// expect compares the end of a run.
func (m *machine) expect(r recap, out string, changed bool, failed int, log string) {
	m.t.Helper()
	if (r.changed > 0) != changed || r.failed != failed || r.unreachable != 0 {
		m.t.Errorf("changed %d, failed %d; expected: changed %t, failed %d\n%s", r.changed, r.failed, changed, failed, out)
	}
	if got := m.log(); got != log {
		m.t.Errorf("calls: %s\nexpected: %s\n%s", got, log, out)
	}
}

// files returns the configuration that the role has written, without comments.
func (m *machine) files() map[string]string {
	m.t.Helper()
	entries, err := os.ReadDir(m.etc)
	if err != nil {
		m.t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(m.etc, e.Name()))
		if err != nil {
			m.t.Fatal(err)
		}
		files[e.Name()] = regexp.MustCompile(`(?m)^#.*\n`).ReplaceAllString(string(data), "")
	}
	return files
}

// TestRole has the role save and apply a configuration: it predicts the changes, makes them once, and detects differences.
func TestRole(t *testing.T) {
	m := newMachine(t)
	const apply, look = "apply DIR", "apply --json DIR"

	r, out := m.play("eth0", "--check")
	m.expect(r, out, true, 0, "")
	if _, err := os.Stat(m.etc); !os.IsNotExist(err) {
		t.Errorf("check mode has made %s", m.etc)
	}

	r, out = m.play("eth0")
	m.expect(r, out, true, 0, apply+"; "+look)
	want := map[string]string{
		"pnet.conf": "add FABRICA eth eth0\nadd FABRICA ib mlx5_0 2\n",
		"eid.conf":  "MYCLUSTER\nSECOND.EID\nseid disable\n",
		"smc.conf":  "handshake_limit = on\nloopback = namespace\nwmem = 1048576\n",
	}
	if diff := cmp.Diff(want, m.files()); diff != "" {
		t.Errorf("files (-want +got): %s", diff)
	}

	r, out = m.play("eth0")
	m.expect(r, out, false, 0, look)

	// A missing device, and a mistake in one file, are detected before any file is changed.
	was := m.files()
	for _, bad := range []struct{ device, vars, message string }{
		{"missing0", "{}", "missing0: FAKE"},
		{"wrong/0", "{}", "smc_conf: pnet.conf:2:17: "},
		{"eth1", `{"smc_ueids": ["A", "B", "C", "D", "E"]}`, "smc_conf: eid.conf:6: "},
		{"eth1", `{"smc_settings": {"wmem": 1}}`, "smc_conf: smc.conf:2: "},
	} {
		for _, args := range [][]string{{"--check"}, nil} {
			r, out = m.play(bad.device, append(args, "-e", bad.vars)...)
			m.expect(r, out, false, 1, "")
			if !strings.Contains(out, bad.message) {
				t.Errorf("the failure does not tell the command's reason, %q:\n%s", bad.message, out)
			}
			if diff := cmp.Diff(was, m.files()); diff != "" {
				t.Errorf("%s, %s: files have changed: %s", bad.device, bad.vars, diff)
			}
		}
	}

	// Simulate a reboot, after which the kernel has no configuration.
	if err := os.RemoveAll(filepath.Join(m.fake, "kernel")); err != nil {
		t.Fatal(err)
	}
	r, out = m.play("eth0", "--check")
	m.expect(r, out, true, 0, "apply --json --check DIR")
	r, out = m.play("eth0")
	m.expect(r, out, true, 0, look)
}
