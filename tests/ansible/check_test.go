// SPDX-License-Identifier: Apache-2.0

//go:build linux

package ansible

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// TestCheck has the role check the connections between two hosts, with a fake smc_chk: first both are SMC-R, then that to the second
// server is TCP. The servers end each time.
func TestCheck(t *testing.T) {
	need.Programs(t, "ansible-playbook", "setsid", "timeout")
	c := install(t)
	playbook, err := filepath.Abs("testdata/check.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, tcp string
		failed    int
		messages  []string
	}{
		{"SMC-R", "", 0, []string{`"msg": "a to b: smcr"`, `"msg": "b to a: smcr"`}},
		{"TCP", "37374", 1, []string{": the peer fell back to TCP: the peer offered no user EID", "(remedy: on the peer: add the same user EID"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			fake := filepath.Join(t.TempDir(), "bin")
			for dir, from := range map[string]string{fake: "testdata/bin", fake + "/documents": source + "/tests/unit/plugins/modules/documents"} {
				if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(fake, "smc_chk"), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(fake, "tcp"), test.tcp)
			_, out := c.run(t, c.home, []string{"PATH=" + fake + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
				"ansible-playbook", "-i", "a,b,", "-e", "ansible_remote_tmp="+filepath.Join(c.home, "remote"), playbook)
			failed := 0
			for _, name := range []string{"a", "b"} {
				r, ok := recaps(out)[name]
				failed += r.failed
				if !ok || r.changed+r.unreachable > 0 {
					t.Errorf("host %s: %+v", name, r)
				}
			}
			if failed != test.failed {
				t.Errorf("%d hosts failed, not %d", failed, test.failed)
			}
			for _, want := range test.messages {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %q", want)
				}
			}
			for _, file := range []string{"connected", "ended"} {
				if got := ports(t, filepath.Join(fake, file)); !slices.Equal(got, []string{"37373", "37374"}) {
					t.Errorf("%s: ports %q", file, got)
				}
			}
			if t.Failed() {
				t.Log(out)
			}
		})
	}
}

// ports returns the ports in the lines of a file, in order.
func ports(t *testing.T, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Error(err)
	}
	lines := strings.Fields(string(data))
	for i, l := range lines {
		lines[i] = l[strings.LastIndex(l, ":")+1:]
	}
	slices.Sort(lines)
	return lines
}
