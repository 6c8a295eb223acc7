// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/smckit/smckit/internal/need"
)

// TestBootstrapLeavesNoMounts makes debootstrap fail after it has mounted a file system in the directory, and checks that the
// next attempt can remove the directory.
func TestBootstrapLeavesNoMounts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("mounts a file system: must be root")
	}
	need.Programs(t, "unshare", "mount")
	bin := t.TempDir()
	fails := "#!/bin/sh\nset -e\nfor arg; do dir=$uri uri=$arg; done\nmkdir -p $dir/proc\nmount -t tmpfs none $dir/proc\n" +
		"touch $dir/proc/busy\n[ $uri = good ]\n"
	if err := os.WriteFile(filepath.Join(bin, "debootstrap"), []byte(fails), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	dir := filepath.Join(t.TempDir(), "system")
	for _, mirrors := range [][]string{{"bad", "good"}, {"bad"}} {
		err := bootstrap(t.Context(), "bookworm", nil, dir, mirrors, func(string) {})
		if failed := len(mirrors) == 1; failed != (err != nil) {
			t.Errorf("from %v: %v", mirrors, err)
		}
		if left, err := os.ReadDir(filepath.Join(dir, "proc")); err != nil || len(left) > 0 {
			t.Errorf("from %v: left in the directory: %v, %v", mirrors, left, err)
		}
	}
}
