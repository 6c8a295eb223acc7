// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

// put writes a file below a directory.
func put(t *testing.T, dir, name string, data []byte, mode os.FileMode) {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, mode); err != nil {
		t.Fatal(err)
	}
}

// filesBelow lists the files below a directory, with their permissions.
func filesBelow(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if info.Mode()&fs.ModeSymlink != 0 {
			target, _ := os.Readlink(path)
			files = append(files, name+" -> "+target)
			return err
		}
		files = append(files, info.Mode().String()+" "+name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	return files
}

// TestInstall checks what 'make install' installs, and that 'make uninstall' removes that and nothing else.
func TestInstall(t *testing.T) {
	need.Programs(t, "make")
	// Use files of the same names instead of the built ones, because only the installation is tested.
	src, dest := t.TempDir(), t.TempDir()
	for _, name := range []string{"Makefile", "preload/install.sh", "man/install.sh"} {
		put(t, src, name, read(t, name), 0o755)
	}
	if err := os.CopyFS(filepath.Join(src, "packaging"), os.DirFS("../packaging")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"cmd/smckit/main.go", "cmd/smcr/main.go", "cmd/smcr-stats/main.go", "cmd/smclab/main.go",
		"build/man/man5/smc_pnet.conf.5", "build/man/man7/af_smc.7", "build/man/man8/smcr.8", "build/man/man8/smcr-link.8", "build/man/man8/smcr-stats.8",
		"build/man/man8/smclab.8", "build/man/man8/smclab-up.8",
		"build/completions/bash/smcr", "build/completions/bash/smcr-stats", "build/completions/bash/smclab",
		"build/completions/zsh/_smcr", "build/completions/zsh/_smcr-stats", "build/completions/zsh/_smclab",
		"build/completions/fish/smcr.fish", "build/completions/fish/smcr-stats.fish", "build/completions/fish/smclab.fish",
	} {
		put(t, src, name, []byte(name), 0o644)
	}
	for _, name := range []string{"smckit", "smclab", "libsmc-preload.so.1", "lib32/libsmc-preload.so.1"} {
		put(t, src, filepath.Join("bin", name), []byte(name), 0o755)
	}
	others := []string{
		"-rw-r--r-- usr/bin/smclab", "-rw-r--r-- usr/lib/libsmc-preload.so.2", "-rw-r--r-- usr/share/man/man8/smcr-others.8",
		"-rw-r--r-- usr/share/bash-completion/completions/ip", "-rw-r--r-- usr/share/man/man8/smclab.8",
	}
	for _, other := range others {
		put(t, dest, other[len("-rw-r--r-- "):], nil, 0o644)
	}
	slices.Sort(others)

	run := func(target string) {
		t.Helper()
		// Do not build anything: -o makes make treat the targets as up to date.
		cmd := exec.Command("make", "-o", "build", "-o", "man", "-o", "completions", target, "DESTDIR="+dest, "PREFIX=/usr", "VERSION=1")
		cmd.Dir = src
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", target, err, out)
		}
	}
	// An older version has installed the command as a file of its own.
	put(t, dest, "usr/bin/smcr", []byte("older"), 0o755)
	run("install")
	run("install") // over an existing installation
	want := append([]string{
		"-rwxr-xr-x usr/bin/smckit",
		"-rwxr-xr-x usr/lib/libsmc-preload.so.1",
		"-rwxr-xr-x usr/lib32/libsmc-preload.so.1",
		"-rw-r--r-- usr/share/bash-completion/completions/smcr",
		"-rw-r--r-- usr/share/bash-completion/completions/smcr-stats",
		"-rw-r--r-- usr/share/fish/vendor_completions.d/smcr-stats.fish",
		"-rw-r--r-- usr/share/fish/vendor_completions.d/smcr.fish",
		"-rw-r--r-- usr/share/man/man5/smc_pnet.conf.5",
		"-rw-r--r-- usr/share/man/man7/af_smc.7",
		"-rw-r--r-- usr/share/man/man8/smcr-link.8",
		"-rw-r--r-- usr/share/man/man8/smcr-stats.8",
		"-rw-r--r-- usr/share/man/man8/smcr.8",
		"-rw-r--r-- usr/share/zsh/site-functions/_smcr",
		"-rw-r--r-- usr/share/zsh/site-functions/_smcr-stats",
		"usr/bin/smcr -> smckit",
		"usr/bin/smcr-stats -> smckit",
		"usr/lib/libsmc-preload.so -> libsmc-preload.so.1",
		"usr/lib32/libsmc-preload.so -> libsmc-preload.so.1",
	}, others...)
	slices.Sort(want)
	got := slices.DeleteFunc(filesBelow(t, dest), func(f string) bool {
		// Other tests check the files that make the commands part of a system.
		return strings.Contains(f, " etc/") || strings.Contains(f, ".d/") && !strings.Contains(f, "/vendor_completions.d/") ||
			strings.Contains(f, "/systemd/")
	})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("installed (-want +got): %s", diff)
	}
	run("uninstall")
	run("uninstall") // without an installation
	got = slices.DeleteFunc(filesBelow(t, dest), func(f string) bool {
		return strings.Contains(f, " etc/smc/") // configuration stays
	})
	if diff := cmp.Diff(others, got); diff != "" {
		t.Errorf("left by uninstall (-want +got): %s", diff)
	}
}
