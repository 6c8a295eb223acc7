// SPDX-License-Identifier: Apache-2.0

package rootdir

import (
	"testing"

	"github.com/smckit/smckit/internal/sysfstest"
)

func TestDir(t *testing.T) {
	root := sysfstest.Files(t, map[string]string{"proc/a/b": " x y\n\n"})
	d := Dir(root)
	if got := d.Path("proc", "a/b"); got != root+"/proc/a/b" {
		t.Errorf("path %q", got)
	}
	if got := d.Text("proc/a", "b"); got != "x y" {
		t.Errorf("text %q", got)
	}
	if got := d.Text("proc/c"); got != "" {
		t.Errorf("text of a missing file %q", got)
	}
	if !d.Exists("proc", "a") || d.Exists("proc", "c") {
		t.Error("the wrong files exist")
	}
	if got := Dir("").Path("proc", "a"); got != "/proc/a" {
		t.Errorf("path below / %q", got)
	}
}
