// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeEmulator makes a program that prints a version of QEMU, or fails if the version is empty.
func fakeEmulator(t *testing.T, dir, version string) {
	t.Helper()
	script := "#!/bin/sh\nexit 1\n"
	if version != "" {
		script = "#!/bin/sh\necho QEMU emulator version " + version + " '(Debian 1:1.2)'\n"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, emulator), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindEmulator(t *testing.T) {
	for _, c := range []struct {
		name, accel, own, cached string
		want                     string // which one is chosen: own, cached
	}{
		{"new", "", "10.0.2", "11.0.0", "own"},
		{"just new enough", "", "8.1.0", "11.0.0", "own"},
		{"old", "", "8.0.5", "11.0.0", "cached"},
		{"old, without a third number", "", "7.2", "11.0.0", "cached"},
		{"old, not emulating", "kvm", "7.2.22", "11.0.0", "own"},
		{"old, and no newer one available", "", "7.2.22", "", "own"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache, bin := t.TempDir(), t.TempDir()
			t.Setenv("SMCKIT_CACHE", cache)
			t.Setenv("SMCKIT_ACCEL", c.accel)
			// An archive without packages.
			t.Setenv("SMCKIT_MIRROR", "file://"+t.TempDir())
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			fakeEmulator(t, bin, c.own)
			if c.cached != "" {
				fakeEmulator(t, filepath.Join(cache, "qemu", emulatorSuite, "usr/bin"), c.cached)
			}
			var progress []string
			q, err := findEmulator(t.Context(), func(s string) { progress = append(progress, s) })
			if err != nil {
				t.Fatal(err)
			}
			if got := map[bool]string{true: "own", false: "cached"}[strings.HasPrefix(q.path, bin)]; got != c.want {
				t.Errorf("takes the %s one, want %s", got, c.want)
			}
			if c.cached == "" && !strings.Contains(strings.Join(progress, "\n"), "QEMU 7.2.22 has to do") {
				t.Errorf("does not say so: %q", progress)
			}
		})
	}
}

func TestUnpackEmulator(t *testing.T) {
	for _, c := range []struct {
		name, version string
		missing       error
		err           string // part of the error; empty for none
	}{
		{name: "good", version: "10.0.2"},
		{name: "does not run", err: "exit status 1"},
		{name: "not available", version: "10.0.2", missing: errors.New("no such package"), err: "no such package"},
	} {
		t.Run(c.name, func(t *testing.T) {
			final := filepath.Join(t.TempDir(), "qemu", "suite")
			fetch := func(ctx context.Context, pkg, dir string, _ func(string)) (string, error) {
				root := t.TempDir()
				if pkg == emulatorPackages[0] {
					fakeEmulator(t, filepath.Join(root, "usr/bin"), c.version)
				}
				if err := os.Mkdir(filepath.Join(root, "DEBIAN"), 0o755); err != nil {
					return "", err
				}
				control := "Package: " + pkg + "\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
				if err := os.WriteFile(filepath.Join(root, "DEBIAN/control"), []byte(control), 0o644); err != nil {
					return "", err
				}
				deb := filepath.Join(dir, pkg+".deb")
				return deb, errors.Join(c.missing, run(ctx, "dpkg-deb", "-b", root, deb))
			}
			err := unpackEmulator(t.Context(), fetch, final, func(string) {})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if _, err := openEmulator(final); err == nil {
					t.Error("it is taken for one all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if q, err := openEmulator(final); err != nil || !strings.HasPrefix(q.path, final) {
				t.Errorf("opened: %v, %v", q, err)
			}
		})
	}
}

// TestPatching makes a kernel patch itself while both processors run the patched code. If the emulator loses a write, the
// guest dies long before the end.
func TestPatching(t *testing.T) {
	Need(t)
	lt := Start(t, Options{CPUs: 2})
	version, err := lt.qemu.version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if accelerator() == "tcg" && !newEnough(version) {
		t.Skipf("QEMU %s is known to fail, and no other could be had", version)
	}
	lt.Must("a", `f=/proc/sys/kernel/sched_schedstats
		yes >/dev/null & a=$!
		yes | cat >/dev/null & b=$!
		n=0; while [ $n -lt 200 ]; do echo 1 >$f; echo 0 >$f; n=$((n+1)); done; kill $a $b`)
}
