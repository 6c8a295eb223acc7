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
func fakeEmulator(t *testing.T, a *architecture, dir, version string) {
	t.Helper()
	script := "#!/bin/sh\nexit 1\n"
	if version != "" {
		script = "#!/bin/sh\necho QEMU emulator version " + version + " '(Debian 1:1.2)'\n"
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, a.emulator), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFindEmulator(t *testing.T) {
	for _, c := range []struct {
		name, arch, accel, own, cached string
		want                           string // which one is chosen: own, cached; or a part of the error
	}{
		{"new", "amd64", "", "10.0.2", "11.0.0", "own"},
		{"just new enough", "amd64", "", "8.1.0", "11.0.0", "own"},
		{"old", "amd64", "", "8.0.5", "11.0.0", "cached"},
		{"old, without a third number", "amd64", "", "7.2", "11.0.0", "cached"},
		{"old, not emulating", "amd64", "kvm", "7.2.22", "11.0.0", "own"},
		{"old, and no newer one available", "amd64", "", "7.2.22", "", "own"},
		{"s390x needs a newer one", "s390x", "", "9.2.0", "11.0.0", "cached"},
		{"s390x", "s390x", "", "10.0.0", "11.0.0", "own"},
		{"s390x is emulated here", "s390x", "kvm", "7.2.22", "11.0.0", "cached"},
		{"old, and no newer one for s390x", "s390x", "", "7.2.22", "", "qemu-system-s390x 10.0 or newer, to emulate s390x"},
		{"none for arm64", "arm64", "", "none", "11.0.0", "cached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, err := findArch(c.arch)
			if err != nil {
				t.Fatal(err)
			}
			cache, bin := t.TempDir(), t.TempDir()
			t.Setenv("SMCKIT_CACHE", cache)
			t.Setenv("SMCKIT_ACCEL", c.accel)
			// An archive without packages.
			t.Setenv("SMCKIT_MIRROR", "file://"+t.TempDir())
			if c.own == "none" {
				t.Setenv("PATH", bin)
			} else {
				t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
				fakeEmulator(t, a, bin, c.own)
			}
			if c.cached != "" {
				name := emulatorSuite
				if c.arch != NativeArch {
					name += "-" + c.arch
				}
				fakeEmulator(t, a, filepath.Join(cache, "qemu", name, "usr/bin"), c.cached)
			}
			var progress []string
			q, err := findEmulator(t.Context(), a, func(s string) { progress = append(progress, s) })
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error %v, want %q", err, c.want)
				}
				return
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
				if pkg == architectures[0].packages[0] {
					fakeEmulator(t, architectures[0], filepath.Join(root, "usr/bin"), c.version)
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
			err := unpackEmulator(t.Context(), architectures[0], fetch, final, func(string) {})
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Errorf("error %v, want %q", err, c.err)
				}
				if _, err := openEmulator(architectures[0], final); err == nil {
					t.Error("it is taken for one all the same")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if q, err := openEmulator(architectures[0], final); err != nil || !strings.HasPrefix(q.path, final) {
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
	version, err := lt.Hosts[0].qemu.version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if accelerator() == "tcg" && !architectures[0].newEnough(version) {
		t.Skipf("QEMU %s is known to fail, and no other could be had", version)
	}
	lt.Must("a", `f=/proc/sys/kernel/sched_schedstats
		yes >/dev/null & a=$!
		yes | cat >/dev/null & b=$!
		n=0; while [ $n -lt 60 ]; do echo 1 >$f; echo 0 >$f; n=$((n+1)); done; kill $a $b`)
}
