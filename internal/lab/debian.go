// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Debian is a copy of a Debian system as installed: it has the essential packages and those that the test asked for, and no
// traces of earlier tests.
type Debian struct {
	Dir  string
	root *buildRoot
	t    testing.TB
}

// NewDebian returns a system of a suite for a test that runs as root. The system is copied from the cache, and made first if
// the cache lacks it. List virtual packages by the name of a package that provides them.
func NewDebian(t testing.TB, suite string, packages ...string) *Debian {
	t.Helper()
	Need(t)
	if os.Geteuid() != 0 {
		t.Skip("installs a Debian system: must be root")
	}
	model, err := debianModel(t.Context(), suite, packages, func(step string) { t.Log(step) })
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), suite)
	if err := run(t.Context(), "cp", "-a", "--reflink=auto", model, dir); err != nil {
		t.Fatal(err)
	}
	return &Debian{Dir: dir, root: &buildRoot{dir: dir}, t: t}
}

// debianModel returns a directory with a system that is never changed.
func debianModel(ctx context.Context, suite string, packages []string, progress func(string)) (string, error) {
	cache, err := CacheDir()
	if err != nil {
		return "", err
	}
	parent := filepath.Join(cache, "debian")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", err
	}
	model := filepath.Join(parent, suite+"-"+recipe(packages))
	unlock, err := lock(ctx, model+".lock", progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(model); err == nil {
		return model, nil
	}
	found, err := mirrors(ctx)
	if err != nil {
		return "", err
	}
	unfinished := model + ".new"
	if err := bootstrap(ctx, suite, packages, unfinished, found, progress); err != nil {
		return "", err
	}
	// Delete the downloaded packages to save space.
	debs, err := filepath.Glob(filepath.Join(unfinished, "var/cache/apt/archives/*.deb"))
	if err != nil {
		return "", err
	}
	for _, deb := range debs {
		err = errors.Join(err, os.Remove(deb))
	}
	unix.Sync()
	return model, errors.Join(err, os.Rename(unfinished, model))
}

// bootstrap installs a system in the directory dir from the first of the mirrors that has everything.
func bootstrap(ctx context.Context, suite string, packages []string, dir string, mirrors []string, progress func(string)) error {
	args := append(debootstrap(packages), suite, dir)
	var err error
	for _, uri := range mirrors {
		if err = os.RemoveAll(dir); err != nil {
			return err
		}
		progress(fmt.Sprintf("installing Debian %s from %s", suite, uri))
		if err = run(ctx, append(slices.Clone(args), uri)...); err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
	}
	// dpkg reports its errors only in this log.
	return fmt.Errorf("installing Debian %s: %w; see %s", suite, err, filepath.Join(dir, "debootstrap/debootstrap.log"))
}

// debootstrap is the command line that installs a system with more packages, except for the suite, the directory and the
// mirror. Without Debian's keys debootstrap would only warn. It mounts file systems in the directory: in a mount namespace of
// its own, as it leaves them there when it is interrupted, and the directory could not be removed.
func debootstrap(packages []string) []string {
	args := []string{"unshare", "--mount", "debootstrap", "--variant=minbase", "--force-check-gpg"}
	if len(packages) > 0 {
		args = append(args, "--include="+strings.Join(packages, ","))
	}
	return args
}

// Offer downloads packages of the suite, and those that they need, to where the system's apt looks for them: 'apt install' then
// needs no network, which guests do not have. It also has apt assume the answer yes.
func (d *Debian) Offer(packages ...string) {
	d.t.Helper()
	d.write("/etc/apt/apt.conf.d/90lab", []byte("APT::Get::Assume-Yes \"true\";\n"), 0o644)
	needed := parseClosure(d.Must("/", "apt-get -qq -s install "+strings.Join(packages, " ")))
	cache, err := CacheDir()
	if err != nil {
		d.t.Fatal(err)
	}
	dir := mkdir(filepath.Join(cache, "debian", "packages"))
	unlock, err := lock(d.t.Context(), dir+".lock", func(step string) { d.t.Log(step) })
	if err != nil {
		d.t.Fatal(err)
	}
	defer unlock()
	for line := range strings.Lines(d.Must("/", "apt-get -qq download --print-uris "+strings.Join(needed, " "))) {
		item, err := parseURI(line)
		if err != nil {
			d.t.Fatal(err)
		}
		name := item.file
		item.file = filepath.Join(dir, name)
		if err := item.download(d.t.Context()); err != nil {
			d.t.Fatal(err)
		}
		if err := run(d.t.Context(), "cp", item.file, filepath.Join(d.Dir, "var/cache/apt/archives", name)); err != nil {
			d.t.Fatal(err)
		}
	}
}

// Try runs a shell script in the system and returns its output. The directory from is mounted on /mnt.
func (d *Debian) Try(from, script string) (string, error) {
	d.t.Helper()
	return d.root.chroot(d.t.Context(), []bind{{dir: from, inside: "/mnt"}}, "DEBIAN_FRONTEND=noninteractive", "sh", "-ec", script)
}

// Must is Try for a script that must not fail.
func (d *Debian) Must(from, script string) string {
	d.t.Helper()
	out, err := d.Try(from, script)
	if err != nil {
		d.t.Fatalf("%s\n%v:\n%s", script, err, out)
	}
	return out
}
