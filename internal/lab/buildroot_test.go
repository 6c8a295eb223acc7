// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/smckit/smckit/internal/need"
)

func TestParseClosure(t *testing.T) {
	out := `Reading package lists...
The following NEW packages will be installed:
  libc6 make
Inst gcc-14-base (14.2.0-19 Debian:13.1/stable [amd64])
Inst libc6 (2.41-12 Debian:13.1/stable [amd64]) []
Inst make [4.3-1] (4.4.1-2 Debian:13.1/stable [amd64])
Inst sparse (0.6.4-5 Debian:13.1/stable [amd64])
Conf libc6 (2.41-12 Debian:13.1/stable [amd64])
`
	// No package is installed in an older version, because the status only contains the kernel.
	want := []string{"gcc-14-base=14.2.0-19", "libc6=2.41-12", "sparse=0.6.4-5"}
	if diff := cmp.Diff(want, parseClosure(out)); diff != "" {
		t.Error(diff)
	}
}

// fakePackages is an archive whose packages have the files named.
type fakePackages struct {
	t        *testing.T
	packages map[string]map[string]string
	err      error // the error that ends the next request
	asked    []string
	there    []debian
}

func (f *fakePackages) closure(_ context.Context, installed []debian, wanted ...string) ([]string, error) {
	f.there, f.asked = installed, wanted
	var all []string
	for name := range f.packages {
		all = append(all, name)
	}
	return all, f.err
}

func (f *fakePackages) fetchAll(ctx context.Context, packages []string, dir string, _ func(string)) ([]string, error) {
	var debs []string
	for _, pkg := range packages {
		root := f.t.TempDir()
		files := map[string]string{"DEBIAN/control": "Package: " + pkg + "\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"}
		for name, data := range f.packages[pkg] {
			files[name] = data
		}
		for name, data := range files {
			name = filepath.Join(root, name)
			_ = os.MkdirAll(filepath.Dir(name), 0o755)
			if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
				return nil, err
			}
		}
		deb := filepath.Join(dir, pkg+".deb")
		if err := run(ctx, "dpkg-deb", "--build", "-Znone", root, deb); err != nil {
			return nil, err
		}
		debs = append(debs, deb)
	}
	return debs, f.err
}

// rooter prepares a call of obtainRoot, with a cache that is empty at first.
func rooter(t *testing.T) (dir string, src *fakePackages, get func(k *Kernel) (*buildRoot, error)) {
	t.Helper()
	need.Programs(t, "dpkg-deb", "tar")
	dir = filepath.Join(t.TempDir(), "6.1")
	src = &fakePackages{t: t, packages: map[string]map[string]string{
		"new":     {"usr/bin/new": "in usr"},
		"old":     {"bin/old": "not in usr", "lib/x86_64-linux-gnu/libold.so": "a library"},
		"headers": {"usr/src/linux-headers-6.1.0-1-amd64/Makefile": "all:\n"},
	}}
	return dir, src, func(k *Kernel) (*buildRoot, error) {
		open := func() (packageSource, error) { return src, nil }
		return obtainRoot(t.Context(), k, dir, open, func(s string) { t.Log(s) })
	}
}

func TestBuildRoot(t *testing.T) {
	dir, src, get := rooter(t)
	k := &Kernel{Series: "6.1", Release: "6.1.0-1-amd64", Package: "6.1.5-1"}
	r, err := get(k)
	if err != nil {
		t.Fatal(err)
	}
	if r.headers != "/usr/src/linux-headers-6.1.0-1-amd64" {
		t.Errorf("headers in %s", r.headers)
	}
	for file, want := range map[string]string{
		"usr/bin/new": "in usr", "usr/bin/old": "not in usr", "bin/new": "in usr", "lib/x86_64-linux-gnu/libold.so": "a library",
	} {
		if got, err := os.ReadFile(filepath.Join(r.dir, file)); string(got) != want {
			t.Errorf("%s: %q, %v", file, got, err)
		}
	}
	for link, want := range map[string]string{"bin": "usr/bin", "usr/bin/awk": "mawk", "usr/bin/sh": "dash"} {
		if got, err := os.Readlink(filepath.Join(r.dir, link)); got != want {
			t.Errorf("%s is a link to %q, %v", link, got, err)
		}
	}
	// The archive has the headers of exactly this kernel, so the kernel package is not needed.
	if got := src.asked[len(src.asked)-1]; got != "linux-headers-6.1.0-1-amd64=6.1.5-1" {
		t.Errorf("asked for %q", got)
	}
	if diff := cmp.Diff([]debian{{name: "linux-image-6.1.0-1-amd64", version: "6.1.5-1"}}, src.there, cmp.AllowUnexported(debian{})); diff != "" {
		t.Error(diff)
	}
	// The second call does not access the archive.
	src.err = errors.New("no network")
	if again, err := get(k); err != nil || again.dir != r.dir {
		t.Errorf("second time: %+v, %v", again, err)
	}
	// Another version of the same release is another kernel, and replaces the first one.
	src.err = nil
	newer, err := get(&Kernel{Series: "6.1", Release: k.Release, Package: "6.1.6-1"})
	if err != nil || newer.dir == r.dir {
		t.Fatalf("%+v, %v", newer, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 || left[0].Name() != filepath.Base(newer.dir) || left[1].Name() != "lock" {
		t.Errorf("left in the cache: %v, %v", left, err)
	}
}

// TestBuildRootInterrupted checks that an incomplete directory is never taken for a root.
func TestBuildRootInterrupted(t *testing.T) {
	dir, src, get := rooter(t)
	k := &Kernel{Series: "6.1", Release: "6.1.0-1-amd64", Package: "6.1.5-1"}
	src.err = errNoHeaders
	if r, err := get(k); !errors.Is(err, errNoHeaders) {
		t.Fatalf("%+v, %v", r, err)
	}
	src.err = nil
	headers := src.packages["headers"]
	delete(src.packages, "headers")
	if r, err := get(k); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a root without headers: %+v, %v", r, err)
	}
	src.packages["headers"] = headers
	stale := filepath.Join(dir, "unpack/usr/bin/stale")
	if err := errors.Join(os.MkdirAll(filepath.Dir(stale), 0o755), os.WriteFile(stale, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	r, err := get(k)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "usr/bin/stale")); !errors.Is(err, os.ErrNotExist) {
		t.Error("what an interrupted run had unpacked got into the root")
	}
}
